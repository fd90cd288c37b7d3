#include "formats/format_catalogue.hpp"

#include <set>

#include "formats/support/error.hpp"
#include "formats/support/suggestions.hpp"
#include "tests/catch.hpp"

namespace guardbit::formats {

TEST_CASE("every name and alias finds its row, in any case, and no other") {
  std::set<std::string> seen;
  for (const FormatEntry& entry : format_catalogue) {
    CHECK(name_of(entry.format) == entry.name);
    std::string names =
        std::string(entry.name) + (entry.aliases.empty() ? "" : ",") + std::string(entry.aliases);
    for (std::size_t begin = 0; begin < names.size();) {
      const std::size_t end = std::min(names.find(',', begin), names.size());
      std::string name = names.substr(begin, end - begin);
      CHECK(seen.insert(name).second);
      CHECK(find_format(name) == entry.format);
      name[0] = static_cast<char>(std::toupper(name[0]));
      CHECK(find_format(name) == entry.format);
      begin = end + 1;
    }
  }
}

TEST_CASE("a user-defined format follows its pattern") {
  CHECK(find_format("e5m6") == floating(5, 6));
  CHECK(find_format("e5m10") == fp16);
  CHECK(find_format("e4m3") == e4m3);  // the catalogued name wins
  CHECK(find_format("e4m3:specials=ieee") == floating(4, 3));
  CHECK(find_format("e4m3:specials=fn") == e4m3);
  CHECK(find_format("e5m2:specials=fnuz") == e5m2fnuz);  // whose bias is one more
  CHECK(find_format("E4M3:Bias=11:Specials=FNUZ") ==
        Format{Encoding::floating, true, 4, 3, 11, Specials::nan_negative_zero, true});
  CHECK(find_format("e4m3:unsigned:specials=fn") == ue4m3);
  CHECK(find_format("e3m2:bias=-5:specials=none:nosubnormals") ==
        Format{Encoding::floating, true, 3, 2, -5, Specials::none, false});
  CHECK(find_format("int7") == integer(7, true));
}

TEST_CASE("what is no format finds nothing") {
  for (const char* name : {"",
                           "fp",
                           "e0m3",
                           "e16m3",
                           "e5m53",
                           "e1m3",
                           "e15m49",
                           "e+5m2",
                           "e5m-2",
                           "e5m",
                           "em2",
                           "e5m2:",
                           "e5m2:bias",
                           "e5m2:bias=",
                           "e5m2:bias=1x",
                           "e5m2:bias=99999",
                           "e5m2:specials=",
                           "e5m2:specials=what",
                           "e5m2::unsigned",
                           "e5m2:bias=1:",
                           "e4m3:unsigned:specials=fnuz",
                           "e1m0:specials=fn",
                           "e99999999999m1",
                           "int0",
                           "int1",
                           "int65"}) {
    INFO(name);
    CHECK_FALSE(find_format(name));
  }
  CHECK(find_format("e15m48"));
  CHECK(find_format("e15m49:unsigned"));
  CHECK(find_format("e1m3:specials=none"));
}

TEST_CASE("names round-trip for every usable descriptor") {
  int usable = 0;
  for (int exponent_bits = 1; exponent_bits <= 15; ++exponent_bits) {
    for (int fraction_bits : {0, 1, 2, 3, 7, 10, 23, 48, 52}) {
      for (Specials specials :
           {Specials::ieee, Specials::nan_all_ones, Specials::nan_negative_zero, Specials::none}) {
        for (int choice = 0; choice < 12; ++choice) {
          Format f = floating(exponent_bits, fraction_bits, specials);
          f.has_sign = (choice & 1) != 0;
          f.has_subnormals = (choice & 2) != 0;
          f.bias += choice / 4 * 3 - 3;
          const std::string name = name_of(f);
          const auto found = find_format(name);
          INFO(name);
          if (!found) {
            // Too wide, or without a code to spare for its specials.
            const bool refused = bits(f) > 64 ||
                                 (specials == Specials::ieee && exponent_bits < 2) ||
                                 (specials == Specials::nan_negative_zero && !f.has_sign) ||
                                 (exponent_bits == 1 && fraction_bits == 0);
            CHECK(refused);
            continue;
          }
          ++usable;
          CHECK(*found == f);
        }
      }
    }
  }
  CHECK(usable > 4000);
}

TEST_CASE("an unknown format is refused in one line that helps") {
  try {
    require_format("fp61", "--to");
    FAIL("accepted");
  } catch (const Error& error) {
    const std::string what = error.what();
    CHECK(what.find("--to: ") == 0);
    CHECK(what.find("did you mean fp64") != std::string::npos);
    CHECK(what.find("e5m2fnuz") != std::string::npos);
    CHECK(what.find('\n') == std::string::npos);
  }
}

TEST_CASE("near names are ranked by distance") {
  const std::vector<std::string_view> names = {"formats", "show", "cast", "verify"};
  CHECK(nearest_names("shwo", names) == std::vector<std::string_view>{"show"});
  CHECK(nearest_names("format", names) == std::vector<std::string_view>{"formats"});
  CHECK(nearest_names("VERIFY", names) == std::vector<std::string_view>{"verify"});
  CHECK(nearest_names("xyzzy", names).empty());
  CHECK(nearest_names("", names).empty());
  CHECK(nearest_names(std::string(100000, 'a'), names).empty());
}

}  // namespace guardbit::formats
