#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>

// A reader of JSON that hands its parts to the caller one by one, so that a long list of calls
// needs no tree. It takes the NaN and Infinity that Python writes.
namespace guardbit::emulator::replay {

class JsonReader {
 public:
  /// formats::Error that begins with `where` and names the byte.
  JsonReader(const std::string& where, std::string_view text) : where_(where), text_(text) {}

  /// What comes next, without taking it.
  enum class Kind { object, list, string, number, boolean, null };
  Kind kind();

  // A list: begin, then next_item before each item until it says false.
  void begin_list();
  bool next_item();
  // An object in the same way; next_key gives the key.
  void begin_object();
  bool next_key(std::string& key);

  std::string string();
  std::variant<std::int64_t, double> number();
  bool boolean();
  void null();
  /// An object of booleans, numbers and texts, each as the text that stands there.
  std::map<std::string, std::string> flags();
  /// Takes any value and drops it.
  void skip();
  /// formats::Error unless nothing but space follows.
  void end();

  [[noreturn]] void refuse(const std::string& what) const;
  /// Names the part that is being read in errors: "call 12".
  void set_place(std::string place) { place_ = std::move(place); }

 private:
  char peek();
  void take(char expected);
  bool take_word(std::string_view word);
  void begin(char opening);
  bool next(char closing);
  unsigned code_unit();

  std::string where_, place_;
  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  /// no item of the innermost list or object was read yet
  bool is_first_ = true;
};

}  // namespace guardbit::emulator::replay
