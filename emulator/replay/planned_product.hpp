#pragma once

#include "emulator/replay/product_verdict.hpp"

// Products of a program that runs, where no result tells their plan, and of recordings.
namespace guardbit::emulator::replay {

/// The product by the plan of the book, else by the one of the recorded calls most like it (the
/// atlas), else, where K has one usual order, by one ascending chain of the usual instruction. The
/// latter two are guesses, and the verdict says so. Status::unmodelled where none of these is
/// there.
ProductVerdict computed_product(const ProductCall& call, const Context& context);

/// Whether the book has a plan of the product.
bool is_in_the_book(const ProductCall& call, const Context& context);

/// judge_product where there are results, else computed_product.
ProductVerdict verdict_of_product(const ProductCall& call, Context& context);

}  // namespace guardbit::emulator::replay
