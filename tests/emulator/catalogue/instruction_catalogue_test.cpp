#include "emulator/catalogue/instruction_catalogue.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "formats/support/error.hpp"
#include "tests/catch.hpp"

// The instructions and their names, against NUMERICS section 3.8 (and 4.3 for AMD) written out once
// more.
namespace {

using namespace guardbit;
using emulator::Family;
using emulator::find_instruction;
using emulator::MatrixInstruction;

using Names = std::vector<std::string>;

/// "a{b,c}d{e,f}" as abde, abdf, acde, acdf.
Names expand(const std::string& pattern) {
  const std::size_t open = pattern.find('{');
  if (open == std::string::npos) return {pattern};
  const std::size_t close = pattern.find('}', open);
  Names names;
  std::size_t begin = open + 1;
  while (begin <= close) {
    const std::size_t end = std::min(pattern.find(',', begin), close);
    for (const std::string& rest : expand(pattern.substr(close + 1))) {
      names.push_back(pattern.substr(0, open) + pattern.substr(begin, end - begin) + rest);
    }
    begin = end + 1;
  }
  return names;
}

Names expand(const Names& patterns) {
  Names names;
  for (const std::string& pattern : patterns) {
    const Names more = expand(pattern);
    names.insert(names.end(), more.begin(), more.end());
  }
  return names;
}

Names together(const std::vector<Names>& lists) {
  Names all;
  for (const Names& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

const std::string fp8 = "{e4m3,e5m2}";
const std::string narrow = "{e4m3,e5m2,e2m3,e3m2,e2m1}";
const std::string tiles = "{m16n16k16,m32n8k16,m8n32k16}";
const std::string any_metadata = "mma.sp{,::ordered_metadata}.sync.aligned.";

const Names volta = {
    "mma.sync.aligned.m8n8k4.row.col.{f16.f16.f16.f16,f32.f16.f16.f16,f32.f16.f16.f32}",
    "wmma.mma.sync.aligned.row.col." + tiles + ".{f16,f32}.{f16,f32}"};

const Names turing =
    together({volta,
              {"mma.sync.aligned.m16n8k8.row.col.{f16.f16.f16.f16,f32.f16.f16.f32}",
               "mma.sync.aligned.m8n8k16.row.col{,.satfinite}.s32.{s8,u8}.{s8,u8}.s32",
               "mma.sync.aligned.m8n8k32.row.col{,.satfinite}.s32.{s4,u4}.{s4,u4}.s32",
               "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc",
               "wmma.mma.sync.aligned.row.col." + tiles + ".s32.{s8.s8,u8.u8}.s32{,.satfinite}",
               "wmma.mma.sync.aligned.row.col.m8n8k32.s32.{s4.s4,u4.u4}.s32{,.satfinite}",
               "wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32"}});

const Names ampere =
    together({turing,
              {"mma.sync.aligned.m16n8k16.row.col.{f16.f16.f16.f16,f32.f16.f16.f32}",
               "mma.sync.aligned.{m16n8k8,m16n8k16}.row.col.f32.bf16.bf16.f32",
               "mma.sync.aligned.{m16n8k4,m16n8k8}.row.col.f32.tf32.tf32.f32",
               "mma.sync.aligned.m8n8k4.row.col{,.rz,.rm,.rp}.f64.f64.f64.f64",
               "mma.sync.aligned.{m16n8k16,m16n8k32}.row.col{,.satfinite}.s32.{s8,u8}.{s8,u8}.s32",
               "mma.sync.aligned.{m16n8k32,m16n8k64}.row.col{,.satfinite}.s32.{s4,u4}.{s4,u4}.s32",
               "mma.sync.aligned.{m16n8k128,m16n8k256}.row.col.s32.b1.b1.s32.{xor,and}.popc",
               "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc",
               any_metadata + "{m16n8k16,m16n8k32}.row.col." +
                   "{f16.f16.f16.f16,f32.f16.f16.f32,f32.bf16.bf16.f32}",
               any_metadata + "{m16n8k8,m16n8k16}.row.col.f32.tf32.tf32.f32",
               any_metadata + "{m16n8k32,m16n8k64}.row.col{,.satfinite}.s32.{s8,u8}.{s8,u8}.s32",
               any_metadata + "{m16n8k64,m16n8k128}.row.col{,.satfinite}.s32.{s4,u4}.{s4,u4}.s32",
               "wmma.mma.sync.aligned.row.col." + tiles + ".f32.bf16.bf16.f32",
               "wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32",
               "wmma.mma.sync.aligned.row.col.m8n8k4{,.rz,.rm,.rp}.f64.f64.f64.f64",
               "wmma.mma.and.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32"}});

const Names fp8_to_fp32 = {
    "mma.sync.aligned.{m16n8k16,m16n8k32}.row.col.f32." + fp8 + "." + fp8 + ".f32",
    any_metadata + "m16n8k64.row.col.f32." + fp8 + "." + fp8 + ".f32"};
const Names fp8_to_fp16 = {"mma.sync.aligned.{m16n8k16,m16n8k32}.row.col.f16." + fp8 + "." + fp8 +
                           ".f16"};
const Names ada = together({ampere, fp8_to_fp32, fp8_to_fp16});

const Names fp64_tiles = {
    "mma.sync.aligned.{m16n8k4,m16n8k8,m16n8k16}.row.col{,.rz,.rm,.rp}.f64.f64.f64.f64"};
const Names warp_group = {
    "wgmma.mma_async.sync.aligned.m64nNk16.{f16.f16.f16,f32.f16.f16,f32.bf16.bf16}",
    "wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32",
    "wgmma.mma_async.sync.aligned.m64nNk32.{f16,f32}." + fp8 + "." + fp8,
    "wgmma.mma_async.sync.aligned.m64nNk32.s32.{s8,u8}.{s8,u8}{,.satfinite}",
    "wgmma.mma_async.sync.aligned.m64nNk256.s32.b1.b1.and.popc",
    "wgmma.mma_async.sp.sync.aligned.m64nNk32.{f16.f16.f16,f32.f16.f16,f32.bf16.bf16}",
    "wgmma.mma_async.sp.sync.aligned.m64nNk16.f32.tf32.tf32",
    "wgmma.mma_async.sp.sync.aligned.m64nNk64.{f16,f32}." + fp8 + "." + fp8,
    "wgmma.mma_async.sp.sync.aligned.m64nNk64.s32.{s8,u8}.{s8,u8}{,.satfinite}"};
const Names hopper = together({ada, fp64_tiles, warp_group});
const Names hopper_12_4 = together({ampere, fp8_to_fp32, fp64_tiles, warp_group});

/// kinds of tcgen05; `k` doubled when sparse.
Names tensor_memory(bool sparse) {
  const auto name = [sparse](const char* kind, int k, const std::string& rest) {
    return std::string("tcgen05.mma") + (sparse ? ".sp" : "") + ".kind::" + kind + ".mMnNk" +
           std::to_string(sparse ? 2 * k : k) + rest;
  };
  const std::string scale = ".f32.e2m1.e2m1.block_scale.scale_vec::";
  return {
      name("f16", 16, ".{f16.f16.f16,f32.f16.f16,f32.bf16.bf16}"),
      name("tf32", 8, ".f32.tf32.tf32"),
      name("f8f6f4", 32, ".{f16,f32}." + narrow + "." + narrow),
      name("i8", 32, ".s32.{s8,u8}.{s8,u8}{,.satfinite}"),
      name("mxf8f6f4", 32, ".f32." + narrow + "." + narrow + ".block_scale.scale_vec::1X.ue8m0"),
      name("mxf4", 64, scale + "2X.ue8m0"),
      name("mxf4nvf4", 64, scale + "{2X.ue8m0,4X.ue8m0,4X.ue4m3}")};
}

const std::string fp8_kind = "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.";
const Names data_centre_blackwell = together(
    {ada,
     fp64_tiles,
     {fp8_kind + "f16." + fp8 + "." + fp8 + ".f16", fp8_kind + "f32." + fp8 + "." + fp8 + ".f32"},
     tensor_memory(false),
     tensor_memory(true)});

Names workstation_kinds(bool sparse) {
  const auto name = [sparse](int k, const std::string& rest) {
    return std::string(sparse ? "mma.sp::ordered_metadata" : "mma") + ".sync.aligned.m16n8k" +
           std::to_string(sparse ? 2 * k : k) + ".row.col.kind::" + rest;
  };
  const std::string pair = narrow + "." + narrow;
  return {name(32, "f8f6f4.f16." + pair + ".f16"),
          name(32, "f8f6f4.f32." + pair + ".f32"),
          name(32, "mxf8f6f4.block_scale.scale_vec::1X.f32." + pair + ".f32.ue8m0"),
          name(64, "mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0"),
          name(64, "mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0"),
          name(64, "mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.{ue8m0,ue4m3}")};
}

const Names workstation_blackwell = together(
    {ada,
     fp64_tiles,
     {"mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f16." + fp8 + "." + fp8 + ".f16"},
     workstation_kinds(false),
     workstation_kinds(true)});

const std::string f32_shapes = "{32x32x1,16x16x1,4x4x1,32x32x2,16x16x4}";
const std::string f16_shapes = "{32x32x4,16x16x4,4x4x4,32x32x8,16x16x16}";
const std::string bf16_shapes = "{32x32x2,16x16x2,4x4x2,32x32x4,16x16x8}";
const Names cdna1 = {"v_mfma_f32_" + f32_shapes + "f32", "v_mfma_f32_" + f16_shapes + "f16",
                     "v_mfma_f32_" + bf16_shapes + "bf16", "v_mfma_i32_" + f16_shapes + "i8"};
const Names cdna2 =
    together({cdna1, {"v_mfma_f32_" + f16_shapes + "bf16_1k", "v_mfma_f64_{16x16x4,4x4x4}f64"}});
const std::string four_fp8 = "{fp8_fp8,fp8_bf8,bf8_fp8,bf8_bf8}";
const Names cdna3 = {"v_mfma_f64_{16x16x4,4x4x4_4b}_f64",
                     "v_mfma_f32_{32x32x1_2b,16x16x1_4b,4x4x1_16b,32x32x2,16x16x4}_f32",
                     "v_mfma_f32_{16x16x8,32x32x4}_xf32",
                     "v_mfma_f32_{32x32x4_2b,16x16x4_4b,4x4x4_16b,32x32x8,16x16x16}_{f16,bf16}",
                     "v_mfma_f32_{16x16x32,32x32x16}_" + four_fp8,
                     "v_mfma_i32_{32x32x16,16x16x32}_i8",
                     "v_smfmac_f32_{16x16x32,32x32x16}_{f16,bf16}",
                     "v_smfmac_f32_{16x16x64,32x32x32}_" + four_fp8,
                     "v_smfmac_i32_{16x16x64,32x32x32}_i8"};

const std::string iu8 = "iu8.{s8,u8}.{s8,u8}", iu4 = "iu4.{s4,u4}.{s4,u4}";
const Names rdna_integers = {"v_wmma_i32_16x16x16_" + iu8,
                             "v_wmma_i32_16x16x16_" + iu8 + ".clamp",
                             "v_wmma_i32_16x16x16_" + iu4,
                             "v_wmma_i32_16x16x16_" + iu4 + ".clamp",
                             "v_dot4_i32_" + iu8,
                             "v_dot4_i32_" + iu8 + ".clamp",
                             "v_dot8_i32_" + iu4,
                             "v_dot8_i32_" + iu4 + ".clamp",
                             "v_dot4_u32_u8",
                             "v_dot8_u32_u4"};
const Names rdna3 = together({rdna_integers,
                              {"v_wmma_{f32,f16}_16x16x16_f16", "v_wmma_{f32,bf16}_16x16x16_bf16",
                               "v_dot2_f32_{f16,bf16}"}});
const Names rdna4 = together(
    {rdna_integers,
     {"v_wmma_{f32,f16}_16x16x16_f16_{w32,w64}", "v_wmma_{f32,bf16}_16x16x16_bf16_{w32,w64}",
      "v_dot2_{f32,f16}_f16", "v_dot2_{f32,bf16}_bf16", "v_dot4_f32_" + four_fp8,
      "v_wmma_i32_16x16x32_" + iu4, "v_wmma_i32_16x16x32_" + iu4 + ".clamp"}});

const Names x86 = {"VFMADD231{PD,PS,PH}", "VDPBF16PS", "VPDP{BUSD,BUSDS,WSSD,WSSDS}",
                   "TDP{BF16,FP16}PS", "TDPB{SS,SU,US,UU}D"};

std::set<std::string> catalogue_names(std::string_view arch, int toolkit) {
  std::set<std::string> names;
  for (const MatrixInstruction& instruction : emulator::catalogue()) {
    if (instruction.arch != arch || !instruction.toolkit.includes(toolkit)) continue;
    INFO(instruction.arch << " " << std::string_view(instruction.name));
    CHECK(names.emplace(std::string_view(instruction.name)).second);
  }
  return names;
}

void check_names(std::string_view arch, int toolkit, const Names& patterns) {
  INFO(arch << " with toolkit " << toolkit);
  const Names list = expand(patterns);
  const std::set<std::string> expected(list.begin(), list.end());
  CHECK(expected.size() == list.size());
  const std::set<std::string> found = catalogue_names(arch, toolkit);
  Names missing, unexpected;
  std::set_difference(expected.begin(), expected.end(), found.begin(), found.end(),
                      std::back_inserter(missing));
  std::set_difference(found.begin(), found.end(), expected.begin(), expected.end(),
                      std::back_inserter(unexpected));
  CHECK(missing == Names{});
  CHECK(unexpected == Names{});
}

std::string message_of(std::string_view arch, std::string_view name, int toolkit = 1300) {
  try {
    emulator::require_instruction(arch, name, "here", toolkit);
  } catch (const formats::Error& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// The instruction that a name leads to, by arch and canonical name; empty when there is none.
std::string instruction_of(std::string_view arch, std::string_view name, int toolkit = 1300) {
  const auto found = find_instruction(arch, name, toolkit);
  if (!found) return "";
  for (const MatrixInstruction& instruction : emulator::catalogue()) {
    const bool same = instruction.arch == found->arch && instruction.family == found->family &&
                      instruction.a == found->a && instruction.b == found->b &&
                      instruction.c == found->c && instruction.d == found->d &&
                      instruction.shape.k == found->shape.k &&
                      instruction.toolkit.includes(toolkit) &&
                      find_instruction(instruction.arch, instruction.name, toolkit)->steps.count ==
                          found->steps.count;
    if (same && (instruction.shape.m == 0 || instruction.shape.m == found->shape.m) &&
        (instruction.shape.n == 0 || instruction.shape.n == found->shape.n)) {
      return std::string(instruction.arch) + " " + std::string(std::string_view(instruction.name));
    }
  }
  return "";
}

}  // namespace

TEST_CASE("each machine has what its instruction set lists") {
  check_names("sm_70", 1300, volta);
  check_names("sm_75", 1300, turing);
  check_names("sm_80", 1300, ampere);
  check_names("sm_86", 1300, ampere);
  check_names("sm_89", 1300, ada);
  check_names("sm_90", 1300, hopper);
  check_names("sm_90", 1204, hopper_12_4);
  check_names("sm_100", 1300, data_centre_blackwell);
  check_names("sm_103", 1300, data_centre_blackwell);
  check_names("sm_120", 1300, workstation_blackwell);
  check_names("cdna1", 1300, cdna1);
  check_names("cdna2", 1300, cdna2);
  check_names("cdna3", 1300, cdna3);
  check_names("rdna3", 1300, rdna3);
  check_names("rdna4", 1300, rdna4);
  check_names("tpu", 1300, {"mxu.bf16"});
  check_names("x86", 1300, x86);
}

TEST_CASE("every machine is listed, and only those have instructions") {
  std::set<std::string_view> with_instructions, pages;
  for (const MatrixInstruction& instruction : emulator::catalogue())
    with_instructions.insert(instruction.arch);
  for (const emulator::Arch& arch : emulator::architectures()) {
    CHECK(!arch.title.empty());
    if (arch.alias_of.empty()) pages.insert(arch.name);
  }
  CHECK(with_instructions == pages);
  for (const emulator::Arch& arch : emulator::architectures()) {
    if (!arch.alias_of.empty()) CHECK(pages.count(arch.alias_of) == 1);
  }
}

TEST_CASE("every instruction is found by its own name") {
  for (const MatrixInstruction& instruction : emulator::catalogue()) {
    INFO(instruction.arch << " " << std::string_view(instruction.name));
    const int toolkit = instruction.toolkit.until == 0 ? 1300 : instruction.toolkit.from;
    const auto found = find_instruction(instruction.arch, instruction.name, toolkit);
    REQUIRE(found);
    CHECK(std::string_view(found->name) == std::string_view(instruction.name));
    CHECK(found->arch == instruction.arch);
    CHECK(found->family == instruction.family);
    CHECK(found->shape == instruction.shape);
    CHECK((found->a == instruction.a && found->b == instruction.b && found->c == instruction.c &&
           found->d == instruction.d));
    CHECK((found->scale == instruction.scale && found->sparsity == instruction.sparsity));
    CHECK(std::equal(found->steps.begin(), found->steps.end(), instruction.steps.begin(),
                     instruction.steps.end()));
  }
}

TEST_CASE("every instruction says how it is known, only Hopper's and this CPU's are measured") {
  int measured = 0;
  for (const MatrixInstruction& instruction : emulator::catalogue()) {
    INFO(instruction.arch << " " << std::string_view(instruction.name));
    CHECK(instruction.evidence.source.size() > 10);
    if (instruction.evidence.basis != emulator::Basis::measured) continue;
    ++measured;
    CHECK((instruction.arch == "sm_90" || instruction.arch == "x86"));
    CHECK(instruction.toolkit.includes(1300));  // what the recordings were compiled with
  }
  CHECK(measured > 100);
}

TEST_CASE("instructions are consistent with themselves") {
  for (const MatrixInstruction& instruction : emulator::catalogue()) {
    INFO(instruction.arch << " " << std::string_view(instruction.name));
    CHECK(instruction.shape.k > 0);
    CHECK(instruction.steps.count > 0);
    CHECK((instruction.steps.end() - 1)->result == instruction.d);
    const bool sparse_name =
        std::string_view(instruction.name).find(".sp") != std::string_view::npos ||
        std::string_view(instruction.name).find("smfmac") != std::string_view::npos;
    CHECK(sparse_name == (instruction.sparsity.group_elements != 0));
    CHECK(emulator::stored_k(instruction, instruction.shape.k) * (sparse_name ? 2 : 1) ==
          instruction.shape.k);
    const bool scaled_name =
        std::string_view(instruction.name).find("block_scale") != std::string_view::npos;
    CHECK(scaled_name == (instruction.scale.count != 0));
  }
}

// ---- Names --------------------------------------------------------------------------------------

TEST_CASE("aliases and suffixes lead to the machine they compute like") {
  const std::string_view f16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32";
  const std::map<std::string_view, std::string_view> pages = {
      {"sm_90a", "sm_90"},   {"sm_87", "sm_86"},    {"sm_110", "sm_100"}, {"sm_110a", "sm_100"},
      {"sm_101a", "sm_100"}, {"sm_100f", "sm_100"}, {"sm_121", "sm_120"}, {"sm_120a", "sm_120"}};
  for (const auto& [name, page] : pages) {
    INFO(name);
    const auto found = find_instruction(name, f16);
    REQUIRE(found);
    CHECK(found->arch == page);
  }
  for (const std::string_view name :
       {"gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151"})
    CHECK(find_instruction(name, "v_dot2_f32_f16")->arch == "rdna3");
  for (const std::string_view name : {"gfx1200", "gfx1201"})
    CHECK(find_instruction(name, "v_dot2_f32_f16")->arch == "rdna4");
  for (const std::string_view unknown : {"sm_91", "sm_9", "sm_90b", "90a", "", "SM_90", "cdna3a"}) {
    INFO(unknown);
    CHECK_FALSE(find_instruction(unknown, f16));
    CHECK(contains(message_of(unknown, f16), "sm_90"));
  }
}

TEST_CASE("qualifiers may stand in any order, types may not") {
  const std::string canonical = "sm_90 mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32";
  CHECK(instruction_of("sm_90", "mma.sync.aligned.row.col.m16n8k16.f32.f16.f16.f32") == canonical);
  CHECK(instruction_of("sm_90", "mma.m16n8k16.sync.aligned.row.col.f32.f16.f16.f32") == canonical);
  CHECK(instruction_of("sm_90", "mma.sync.aligned.m16n8k16.f32.f16.f16.f32") == canonical);
  CHECK(instruction_of("sm_90", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f32").empty());
  CHECK(instruction_of("sm_90", "mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32").empty());
  CHECK(instruction_of("sm_90", "mma.sync.aligned.m16n8k17.row.col.f32.f16.f16.f32").empty());
  CHECK(instruction_of("sm_90", "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2") !=
        instruction_of("sm_90", "wgmma.mma_async.sync.aligned.m64n8k32.f32.e5m2.e4m3"));
  CHECK(instruction_of("sm_90", "mma.sync.aligned.m8n8k4.row.col.rn.f64.f64.f64.f64") ==
        "sm_90 mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64");
  const auto wraps = find_instruction("sm_90", "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32");
  const auto saturates =
      find_instruction("sm_90", "mma.sync.aligned.satfinite.m8n8k16.row.col.s32.s8.s8.s32");
  REQUIRE((wraps && saturates));
  CHECK(wraps->steps.begin()->spec.integer_overflow == emulator::IntegerOverflow::wrap);
  CHECK(saturates->steps.begin()->spec.integer_overflow == emulator::IntegerOverflow::saturate);
}

TEST_CASE("layouts are taken where the instruction has several") {
  for (const std::string layouts : {"row.row", "col.row", "col.col", "row.col"}) {
    INFO(layouts);
    CHECK(find_instruction("sm_90", "mma.sync.aligned.m8n8k4." + layouts + ".f16.f16.f16.f16"));
    CHECK(find_instruction("sm_90", "wmma.mma.sync.aligned." + layouts + ".m16n16k16.f32.f16"));
    CHECK(find_instruction(
        "sm_90", "wmma.mma.sync.aligned." + layouts + ".m8n8k4.f64.f64.f64.f64"));  // as ptxas does
    const bool only = layouts == "row.col";
    const auto found = [&](const std::string& before, const std::string& after) {
      return find_instruction("sm_90", before + layouts + after).has_value();
    };
    CHECK(found("mma.sync.aligned.m16n8k16.", ".f32.f16.f16.f32") == only);
    CHECK(found("wmma.mma.sync.aligned.", ".m8n8k32.s32.s4.s4.s32") == only);
    CHECK(found("wmma.mma.xor.popc.sync.aligned.", ".m8n8k128.s32.b1.b1.s32") == only);
    CHECK(found("mma.sync.aligned.m8n8k4.", ".f64.f64.f64.f64") == only);
  }
  CHECK_FALSE(find_instruction("sm_90", "mma.sync.aligned.m8n8k4.row.f16.f16.f16.f16"));
}

TEST_CASE("M and N are free where the instruction has many") {
  const auto wgmma = [](const std::string& n, const std::string& rest) {
    return find_instruction("sm_90a", "wgmma.mma_async.sync.aligned.m64n" + n + rest).has_value();
  };
  for (int n = 0; n <= 272; ++n) {
    INFO(n);
    const std::string text = std::to_string(n);
    const bool floating = n >= 8 && n <= 256 && n % 8 == 0;
    const bool integer = floating && (n <= 32 || n % 16 == 0);
    CHECK(wgmma(text, "k16.f32.f16.f16") == floating);
    CHECK(wgmma(text, "k32.s32.s8.u8") == integer);
    CHECK(wgmma(text, "k256.s32.b1.b1.and.popc") == integer);
  }
  CHECK(wgmma("N", "k16.f32.f16.f16"));
  const auto found =
      find_instruction("sm_90", "wgmma.mma_async.sync.aligned.m64n96k16.f32.f16.f16");
  REQUIRE(found);
  CHECK(found->shape == emulator::Shape{64, 96, 16});
  CHECK_FALSE(find_instruction("sm_90", "wgmma.mma_async.sync.aligned.m128n96k16.f32.f16.f16"));
  const auto tensor = find_instruction("sm_100a", "tcgen05.mma.kind::f16.m128n64k16.f32.f16.f16");
  REQUIRE(tensor);
  CHECK(tensor->shape == emulator::Shape{128, 64, 16});
  CHECK_FALSE(find_instruction("sm_100a", "tcgen05.mma.kind::f16.m96n64k16.f32.f16.f16"));
  CHECK_FALSE(find_instruction("sm_100a", "tcgen05.mma.kind::f16.m128n4k16.f32.f16.f16"));
}

TEST_CASE("unknown names are answered with the nearest") {
  const std::string near = message_of("sm_90", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f23");
  CHECK(contains(near, "here: "));
  CHECK(contains(near, "did you mean"));
  CHECK(contains(near, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"));
  CHECK_FALSE(contains(near, "\n"));
  const std::string elsewhere =
      message_of("sm_80", "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16");
  CHECK(contains(elsewhere, "sm_80"));
  CHECK(contains(elsewhere, "sm_90"));
  CHECK(contains(message_of("sm_90", "wgmma.mma_async.sync.aligned.m64n7k16.f32.f16.f16"),
                 "geometry"));
  CHECK(contains(message_of("sm_90", "mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16", 1204),
                 "12.4"));
  for (const std::string& odd :
       {std::string(), std::string("."), std::string("mma"), std::string(5000, 'm'),
        std::string("mma..sync....row"), "mma." + std::string(200, '.') + "sync"}) {
    CHECK(contains(message_of("sm_90", odd), "here: "));
  }
  // A name that means an instruction but is longer than an instruction's name can be.
  std::string padded = "mma";
  for (int i = 0; i < 40; ++i) padded += ".sync";
  CHECK(contains(message_of("sm_90", padded + ".aligned.m16n8k16.row.col.f32.f16.f16.f32"),
                 "here: "));
}

TEST_CASE("toolkits choose between compositions") {
  CHECK(emulator::parse_toolkit("12.4") == 1204);
  CHECK(emulator::parse_toolkit("13.0") == 1300);
  CHECK(emulator::parse_toolkit("13") == 1300);
  CHECK(emulator::parse_toolkit("13.0.48") == 1300);
  for (const std::string_view bad : {"", "x", "13.", "13.x", ".4", "-1.0", "13.100", "1e3"}) {
    INFO(bad);
    CHECK_FALSE(emulator::parse_toolkit(bad));
  }
  const std::string_view fp8_name = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32";
  CHECK(find_instruction("sm_90", fp8_name, 1204)->steps.count == 4);
  CHECK(find_instruction("sm_90", fp8_name, 1299)->steps.count == 4);
  CHECK(find_instruction("sm_90", fp8_name, 1300)->steps.count == 3);
  CHECK(find_instruction("sm_90", fp8_name, 1400)->steps.count == 3);
  CHECK(find_instruction("sm_89", fp8_name, 1204)->steps.count == 1);
}

TEST_CASE("a scale vector that a kind fixes may be left out") {
  const auto found = [](std::string_view name) { return find_instruction("sm_120", name); };
  CHECK(found("mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0")
            ->scale.count == 2);
  CHECK(
      found("mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e2m1.f32.ue8m0")
          ->scale.count == 1);
  CHECK_FALSE(found(
      "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"));
}

TEST_CASE("names without a family are unknown") {
  for (const std::string_view name : {"", ".", "f32", "sync", "row.col", "tf32.f32", "b1"}) {
    INFO(name);
    CHECK_FALSE(find_instruction("sm_90", name));
    CHECK_THROWS_AS(emulator::require_instruction("sm_90", name, "here"), formats::Error);
  }
  CHECK_FALSE(find_instruction("sm_90", std::string(500, 'x')));
}

TEST_CASE("dot captures find their instruction") {
  const auto name = [](std::string_view arch, std::string_view unit, const formats::Format& in,
                       const formats::Format& out, int k) {
    const MatrixInstruction instruction = emulator::require_dot(arch, unit, in, out, k, "here");
    return std::string(std::string_view(instruction.name));
  };
  // Not m8n8k4: there it is scalar arithmetic, on Volta it is the unit's own.
  CHECK(name("sm_90", "mma.sync", formats::fp16, formats::fp32, 4) ==
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32");
  CHECK(name("sm_70", "mma.sync", formats::fp16, formats::fp32, 4) ==
        "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32");
  CHECK(name("sm_90", "mma.sync", formats::fp16, formats::fp32, 16) ==
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32");
  CHECK(name("sm_90", "wgmma", formats::e4m3, formats::fp32, 32) ==
        "wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e4m3");
  CHECK(name("sm_70", "wmma", formats::fp16, formats::fp16, 4) ==
        "wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16");
  CHECK_THROWS_AS(name("sm_90", "mma.sync", formats::fp16, formats::fp32, 17), formats::Error);
  CHECK_THROWS_AS(name("sm_90", "abacus", formats::fp16, formats::fp32, 4), formats::Error);
  CHECK_THROWS_AS(name("sm_91", "mma.sync", formats::fp16, formats::fp32, 4), formats::Error);
}
