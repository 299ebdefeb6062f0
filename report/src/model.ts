// The document that the program puts into the page; src/program/report/data.cpp writes it.

export interface ReportDocument {
  format: 'tamis-report';
  format_version: number;
  title: string;
  created: string;
  tamis: string;
  comparisons: Comparison[];
}

// What the runs measure after their epochs.
export interface Metric {
  name: string;
  // 'fraction': values in [0, 1] that the page shows in per cent. Any other text stands behind the
  // number.
  unit: string;
  direction: 'higher'|'lower';
  headline: boolean;
}

export interface Comparison {
  name: string;
  // The headline, which the methods are compared by, and all others.
  metrics: [Metric, ...Metric[]];
  // Label of the method that the others are compared with.
  baseline: string|null;
  confidence: number;
  // A value of the headline, whose time of arrival is compared.
  reach: number|null;
  time_saved_of: 'processor_seconds'|'train_seconds';
  verdict: string[];
  cautions: string[];
  rows: Row[];
  settings: Setting[];
  sweep: Sweep|null;
  runs: Run[];
}

// One option of a method at several values, each with the label of its row.
export interface Sweep {
  method: string;
  option: string;
  points: {value: number; method: string}[];
}

// One method of the table: mean and deviation are the headline's. Shares are fractions; null is
// what the runs cannot tell.
export interface Row {
  method: string;
  num_seeds: number;
  mean: number|null;
  deviation: number|null;
  difference: Difference|null;
  pruned_share: number|null;
  train_seconds_mean: number|null;
  time_saved: number|null;
  // Which pruning cannot do: the machine was busy.
  more_saved_than_pruned: boolean;
  prune_overhead: number|null;
  // Only where they apply.
  score_seconds_mean?: number;
  num_disturbed?: number;
  equal_budget?: {baseline: string, difference: Difference}[];
  reach?: {num_reached: number, seconds: number|null, share_of_baseline: number|null};
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

// One value per finished epoch; what was not measured or not finite is null, steps that are not
// known are 0.
export interface Epochs {
  samples: number[];
  pruned: number[];
  steps: number[];
  learning_rate: (number|null)[];
  train_seconds: number[];
  prune_seconds: number[];
  test_seconds: number[];
  // By the metric's name.
  values: Record<string, (number|null)[]>;
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
  epochs: Epochs;
  score_histograms: (Histogram|null)[]|null;
  analysis: Analysis|null;
  suspects: Suspects|null;
  advice: Advice|null;
  gallery: Gallery|null;
  config: {environment?: Record<string, Value>; [group: string]: unknown};
}

// What `tamis suspects --json` prints, hardest first.
export interface Suspects {
  score: {name: string};
  num_samples: number;
  num_scored: number;
  epochs: number[];
  // Where labels were made wrong on purpose.
  wrong_labels?: {here: number, in_all: number};
  suspects: Suspect[];
}

export interface Suspect {
  sample: number;
  index?: number;
  file?: string;
  label?: number;
  class?: string;
  true_label?: number;
  true_class?: string;
  score: number;
  rank: number;
  hard_share: number;
  hard_in_a_row: number;
  scores?: (number|null)[];
}

// What `tamis advise --json` prints. The means are of the two groups that the losses fall into, where they do.
export interface Advice {
  num_samples: number;
  num_recorded: number;
  num_epochs: number;
  // Shares of a whole run; spearman is how well the score agrees with the true losses.
  methods: {method: string, pruned_share: number, spearman: number|null}[];
  suspects: {number: number, low_mean?: number, high_mean?: number};
  method: string;
  reasons: string[];
  commands: string[];
}

// gallery.json of the run folder.
export interface Gallery {
  score: string;
  epochs: number[];
  num_never_learned?: number;
  num_never_forgotten?: number;
  groups: {hardest?: number[], easiest?: number[], forgotten?: number[]};
  samples: GallerySample[];
}

export interface GallerySample {
  sample: number;
  place: string;
  label?: string;
  true_label?: string;
  predicted?: string;
  forgotten?: number;
  scores: (number|null)[];
  // PNG in base64, checked by the program.
  picture: string;
}

// analysis.json of `tamis analyze`; src/program/analyze/analysis_json.cpp writes it. A number that is not defined
// is null.
export interface Analysis {
  name: string;
  recording: {
    num_samples: number,
    num_recorded: number,
    num_steps: number,
    num_epochs: number,
    batch_size: number,
  };
  score: {name: string, options: Record<string, number|string|null>};
  spectra: {
    segment_length: number,
    num_samples: number,
    cutoff: number,
    num_frequencies: number,
    num_noise_above: number,
    frequencies: number[],
    signal: number[],
    noise: number[],
  }|null;
  signal_to_noise:
      {after: {alpha: number, over_visits: number|null, between_samples: number|null}[]}|null;
  decomposition: {num_samples: number, largest_error: number|null}|null;
  series: {
    sample: number,
    batch_loss: number[],
    sample_loss: number[],
    signal: number[],
    score: number[],
    filtered_signal: number[],
  }|null;
  why_no_signal: string;
  fidelity: {
    truth: 'measured'|'last visit',
    top_share: number,
    epochs: number[],
    scores: ScoreFidelity[],
    alphas: ScoreFidelity[],
  };
}

export interface ScoreFidelity {
  name: string;
  options: Record<string, number|string|null>;
  sees: 'per-sample losses'|'batch losses'|'output gradients';
  spearman: (number|null)[];
  pearson: (number|null)[];
  top_overlap: (number|null)[];
}

export function readDocument(): ReportDocument {
  const text = document.getElementById('tamis-data')?.textContent ?? '';
  const data = JSON.parse(text) as ReportDocument;
  if (data.format !== 'tamis-report' || data.format_version !== 2) {
    throw new Error(
        `data must be tamis-report version 2, got ${data.format} ${data.format_version}`);
  }
  return data;
}
