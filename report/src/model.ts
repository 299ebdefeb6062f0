// The document that the program puts into the page; cli/report_data.cpp writes it.

export interface ReportDocument {
  format: 'winnow-report';
  format_version: number;
  title: string;
  created: string;
  winnow: string;
  comparisons: Comparison[];
}

export interface Comparison {
  name: string;
  // Label of the method that the others are compared with.
  baseline: string|null;
  confidence: number;
  verdict: string[];
  cautions: string[];
  rows: Row[];
  settings: Setting[];
  runs: Run[];
}

// One method of the table. Shares and accuracies are fractions; null is what the runs cannot tell.
export interface Row {
  method: string;
  num_seeds: number;
  accuracy_mean: number|null;
  accuracy_deviation: number|null;
  difference: Difference|null;
  pruned_share: number|null;
  train_seconds_mean: number|null;
  time_saved: number|null;
  prune_overhead: number|null;
}

export interface Difference {
  num_pairs: number;
  mean: number;
  low: number|null;
  high: number|null;
  supported: boolean;
}

export type Value = string|number|boolean|null|Value[];

// Either one value for all, or one for each method.
export interface Setting {
  key: string;
  value?: Value;
  values?: Record<string, Value>;
}

// One value per finished epoch; a loss that was not finite is null.
export interface Metrics {
  samples: number[];
  steps: number[];
  train_loss: (number|null)[];
  train_accuracy: number[];
  test_loss: (number|null)[];
  test_accuracy: number[];
  learning_rate: number[];
  train_seconds: number[];
  prune_seconds: number[];
  test_seconds: number[];
}

export interface Histogram {
  low: number;
  high: number;
  counts: number[];
}

export interface Run {
  // The label of its row.
  method: string;
  name: string;
  folder: string;
  seed: number;
  num_train: number;
  num_epochs: number;
  finished: boolean;
  metrics: Metrics;
  score_histograms: (Histogram|null)[]|null;
  config: {environment?: Record<string, Value>; [group: string]: unknown};
}

export function readDocument(): ReportDocument {
  const text = document.getElementById('winnow-data')?.textContent ?? '';
  const data = JSON.parse(text) as ReportDocument;
  if (data.format !== 'winnow-report' || data.format_version !== 1) {
    throw new Error(
        `data must be winnow-report version 1, got ${data.format} ${data.format_version}`);
  }
  return data;
}
