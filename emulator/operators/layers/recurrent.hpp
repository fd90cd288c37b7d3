#pragma once

#include "emulator/operators/operator_tensor.hpp"

// Cells of recurrent networks in one kernel: what follows a step's two products.
namespace guardbit::emulator::operators {

/// Products with the input and with the hidden state, [rows, gates * size] each, and biases of
/// [gates * size], or null.
struct GateSums {
  const Tensor& input;
  const Tensor& hidden;
  const Tensor* input_bias = nullptr;
  const Tensor* hidden_bias = nullptr;
};

struct LstmCell {
  /// [rows, size] each, and the four gates, [rows, 4 size]
  Tensor hidden, cell, gates;
};
/// `cell` is [rows, size]. UnknownShape where shapes do not fit, as in the others.
LstmCell lstm_cell(const GateSums& sums, const Tensor& cell);

struct LstmGradients {
  Tensor gates, cell;
};
/// Gradients of the hidden state and of the cell may be absent.
LstmGradients lstm_cell_gradients(const Tensor* of_hidden, const Tensor* of_cell,
                                  const Tensor& cell_before, const Tensor& cell_after,
                                  const Tensor& gates);

struct GruCell {
  /// [rows, size], and [rows, 5 size]: both gates, the candidate, the state before, the candidate's
  /// share of the state
  Tensor hidden, kept;
};
GruCell gru_cell(const GateSums& sums, const Tensor& hidden);

struct GruGradients {
  Tensor input, hidden, state;
};
GruGradients gru_cell_gradients(const Tensor& of_hidden, const Tensor& kept);

}  // namespace guardbit::emulator::operators
