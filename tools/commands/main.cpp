#include "tools/commands/commands.hpp"

int main(int count, char** words) { return guardbit::tools::command_line(count, words); }
