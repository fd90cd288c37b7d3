// Products of Eigen and of a BLAS for `guardbit probe --exec`: products WAY IN OUT reads a [T, M,
// K] and b [T, K, N] in FP32 from the safetensors file IN and writes d [T, M, N] to OUT.
//
//   g++ -O2 -march=native -I /usr/include/eigen3 products.cpp -lopenblas -o products
//   guardbit probe --exec './products eigen-dot' --a fp32 --d fp32 --k 64
//   guardbit probe --exec './products sgemm' --a fp32 --d fp32 --k 64 --m 32 --n 32 --row 0
//   --column 0
#include <Eigen/Dense>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

extern "C" {
float cblas_sdot(int n, const float* x, int x_step, const float* y, int y_step);
void cblas_sgemm(int order, int a_transposed, int b_transposed, int m, int n, int k, float alpha,
                 const float* a, int a_step, const float* b, int b_step, float beta, float* c,
                 int c_step);
}

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

int main(int, char** arguments) {
  const std::string way = arguments[1];
  std::ifstream in(arguments[2], std::ios::binary);
  const std::string file((std::istreambuf_iterator<char>(in)), {});
  std::uint64_t length = 0;
  file.copy(reinterpret_cast<char*>(&length), 8);
  const auto header = nlohmann::json::parse(file.substr(8, length));
  const auto read = [&](const char* name) {
    const std::size_t begin = header[name]["data_offsets"][0],
                      end = header[name]["data_offsets"][1];
    std::vector<float> values((end - begin) / 4);
    file.copy(reinterpret_cast<char*>(values.data()), end - begin, 8 + length + begin);
    return values;
  };
  const std::vector<float> a = read("a"), b = read("b");
  const long t = header["a"]["shape"][0], m = header["a"]["shape"][1], k = header["a"]["shape"][2];
  const long n = header["b"]["shape"][2];
  std::vector<float> d(static_cast<std::size_t>(t * m * n));
  for (long i = 0; i < t; ++i) {
    const Eigen::Map<const Matrix> x(a.data() + i * m * k, m, k), y(b.data() + i * k * n, k, n);
    Eigen::Map<Matrix> z(d.data() + i * m * n, m, n);
    const Eigen::VectorXf row = x.row(0), column = y.col(0);
    if (way == "eigen-dot") {
      z.setConstant(row.dot(column));
    } else if (way == "eigen") {
      z.noalias() = x * y;
    } else if (way == "sdot") {
      z.setConstant(cblas_sdot(static_cast<int>(k), row.data(), 1, column.data(), 1));
    } else if (way == "sgemm") {
      cblas_sgemm(101, 111, 111, static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), 1,
                  x.data(), static_cast<int>(k), y.data(), static_cast<int>(n), 0, z.data(),
                  static_cast<int>(n));
    } else {
      std::cerr << "eigen-dot, eigen, sdot or sgemm, not " << way << '\n';
      return 1;
    }
  }
  std::string text =
      nlohmann::json{
          {"d", {{"dtype", "F32"}, {"shape", {t, m, n}}, {"data_offsets", {0, 4 * d.size()}}}}}
          .dump();
  length = text.size();
  std::ofstream out(arguments[3], std::ios::binary);
  out.write(reinterpret_cast<const char*>(&length), 8);
  out << text;
  out.write(reinterpret_cast<const char*>(d.data()), static_cast<std::streamsize>(4 * d.size()));
}
