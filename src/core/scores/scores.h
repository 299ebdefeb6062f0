// The built-in scores. The registry gives complete options, which keep its rules.
#pragma once

#include <cstddef>
#include <memory>

#include "tamis/scorer.h"

namespace tamis::detail {

// Batch Loss Score (BLS): s_i = alpha s_i + (1 - alpha) L, a moving average of the mean losses of
// the batches a sample took part in. Starts at initial_score; NaN: at the first batch's loss.
std::unique_ptr<Scorer> make_batch_loss(std::size_t num_samples, const OptionMap& options);

// s_i = L of the sample's last batch: BLS without its average.
std::unique_ptr<Scorer> make_last_batch_loss(std::size_t num_samples, const OptionMap& options);

// s_i = l_i at the last visit; needs per-sample losses. What InfoBatch and SeTa use themselves.
std::unique_ptr<Scorer> make_sample_loss(std::size_t num_samples, const OptionMap& options);

// s_i = (1 - decay) s_i + decay u, and s_i = u at the first visit, where u is the per-sample loss,
// or the batch's mean loss if only that is known. The score of epsilon-greedy.
std::unique_ptr<Scorer> make_loss_average(std::size_t num_samples, const OptionMap& options);

// v_i = (1-b) v_i + b (u - m_i)^2 with the old m_i, then m_i = (1-b) m_i + b u; score m_i + c v_i;
// b is decay, c is confidence, u as above. At the first visit m_i = u and v_i = 0. UCB's score.
std::unique_ptr<Scorer> make_loss_ucb(std::size_t num_samples, const OptionMap& options);

// s_i = mean over the visits of L / mu - 1, mu a running mean of L: BLS without forgetting. Skips
// losses that are not positive.
std::unique_ptr<Scorer> make_batch_loss_mean(std::size_t num_samples, const OptionMap& options);

// Batch Loss Reconstruction (BLR): per-sample losses from the mean losses of many overlapping
// batches, as tomography does from projections. Score mu w_i, with w_i = exp(v_i) = 1 at the start.
// For a batch with mean loss L > 0: m = mean of w_i over the batch; mu += max(0.01, 1 / (t + 1))
// (L / m - mu), mu = L / m at the first observation; w_i *= (L / (mu m))^step. Skips losses that
// are not positive: use batch-loss for losses that can be negative.
std::unique_ptr<Scorer> make_reconstruction(std::size_t num_samples, const OptionMap& options);

// Output gradient (OGS): u_i = L n_i^q / mean_j(n_j^q) over the rows j of the batch, n_i the norm
// of the loss's gradient by output i and q the power; s_i = alpha s_i + (1 - alpha) u_i, and s_i =
// u_i at the first visit. Does not depend on anything that multiplies all norms. Needs one norm per
// sample. Skips a batch whose norms are all 0, or of which one is negative or not finite.
std::unique_ptr<Scorer> make_output_gradient(std::size_t num_samples, const OptionMap& options);

// Scores that somebody else computes: the first value that is observed as a sample's loss stays for
// good. What they stand for, and after how many epochs they are measured, is for the trainer.
std::unique_ptr<Scorer> make_el2n(std::size_t num_samples, const OptionMap& options);
std::unique_ptr<Scorer> make_grand(std::size_t num_samples, const OptionMap& options);
std::unique_ptr<Scorer> make_influence(std::size_t num_samples, const OptionMap& options);
std::unique_ptr<Scorer> make_forgetting(std::size_t num_samples, const OptionMap& options);

}  // namespace tamis::detail
