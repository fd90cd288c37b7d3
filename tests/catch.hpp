#pragma once

// Debian 12 ships Catch2 2.13, Ubuntu 24.04 ships 3.x: tests include this file instead of either.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;  // as 2.13 has it
#else
#include <catch2/catch.hpp>
#endif
