// The control loop of an exported policy in C++, with onnxruntime alone.
//
//   horizon export core-quiet policy.onnx --motors own
//   g++ -std=c++17 -O2 deploy.cpp -I ORT/include -L ORT/lib -lonnxruntime -o deploy
//   ./deploy policy.onnx < observations
//
// Reads an observation a line (45 numbers, laid out and scaled as the metadata in the file
// says, see docs/deploy.md) and writes twelve joint targets a line, rad, in the policy's
// order. An empty line begins an episode: the memory is forgotten. On a robot, its driver
// takes the place of the two streams, at the rate of the policy, and holds the targets
// with the gains of the metadata. Tested against the same file in Python; not on a robot.

#include <onnxruntime_cxx_api.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

// The numbers after a key of the metadata, which is JSON: one, or those of a list.
std::vector<float> numbers(const std::string& json, const std::string& key) {
  auto at = json.find("\"" + key + "\"");
  if (at == std::string::npos) throw std::runtime_error("no " + key + " in the metadata");
  at = json.find(':', at) + 1;
  const auto first = json.find_first_not_of(" \n", at);
  const bool is_list = json[first] == '[';
  const auto end = json.find_first_of(is_list ? "]" : ",}", first);
  auto text = json.substr(first + is_list, end - first - is_list);
  std::replace(text.begin(), text.end(), ',', ' ');
  std::istringstream stream(text);
  std::vector<float> found;
  for (float value; stream >> value;) found.push_back(value);
  return found;
}

class Policy {
 public:
  explicit Policy(const char* file) : session_(env_, file, options()) {
    Ort::AllocatorWithDefaultOptions allocator;
    const auto text =
        session_.GetModelMetadata().LookupCustomMetadataMapAllocated("horizon", allocator);
    if (!text) throw std::runtime_error("not a file of `horizon export`");
    const std::string meta = text.get();
    pose_ = numbers(meta, "default_pose_rad");
    scale_ = numbers(meta, "action_scale").at(0);
    rate_hz = numbers(meta, "rate_hz").at(0);
    obs_.resize(size(shape(0)));
    cache_shape_ = shape(1);
    reset();
  }

  // Begin an episode: nothing to remember.
  void reset() {
    cache_.assign(size(cache_shape_), 0.0f);
    valid_ = {0};
  }

  std::vector<float> step(const std::vector<float>& obs) {
    if (obs.size() != obs_.size())
      throw std::runtime_error("an observation has " + std::to_string(obs_.size()) + " numbers");
    obs_ = obs;
    const std::array<int64_t, 2> obs_shape{1, static_cast<int64_t>(obs_.size())};
    const std::array<int64_t, 1> valid_shape{1};
    std::array<Ort::Value, 3> inputs{tensor(obs_, obs_shape), tensor(cache_, cache_shape_),
                                     tensor(valid_, valid_shape)};
    auto outputs = session_.Run(Ort::RunOptions{nullptr}, kInputs, inputs.data(), 3, kOutputs, 3);
    const auto* action = outputs[0].GetTensorData<float>();
    std::copy_n(outputs[1].GetTensorData<float>(), cache_.size(), cache_.begin());
    valid_[0] = *outputs[2].GetTensorData<int64_t>();
    std::vector<float> target(pose_);
    for (size_t i = 0; i < target.size(); ++i) target[i] += scale_ * action[i];
    return target;
  }

  float rate_hz;

 private:
  static constexpr const char* kInputs[] = {"obs", "cache", "valid"};
  static constexpr const char* kOutputs[] = {"action", "next_cache", "next_valid"};

  static Ort::SessionOptions options() {
    Ort::SessionOptions found;
    found.SetIntraOpNumThreads(1);  // Leave the robot's other cores alone.
    return found;
  }
  std::vector<int64_t> shape(size_t input) {
    return session_.GetInputTypeInfo(input).GetTensorTypeAndShapeInfo().GetShape();
  }
  static size_t size(const std::vector<int64_t>& shape) {
    size_t product = 1;
    for (auto length : shape) product *= static_cast<size_t>(length);
    return product;
  }
  template <typename Values, typename Shape>
  Ort::Value tensor(Values& values, const Shape& shape) {
    return Ort::Value::CreateTensor(memory_, values.data(), values.size(), shape.data(),
                                    shape.size());
  }

  Ort::Env env_{ORT_LOGGING_LEVEL_WARNING, "deploy"};
  Ort::Session session_;
  Ort::MemoryInfo memory_ = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  std::vector<float> pose_, obs_, cache_;
  std::vector<int64_t> cache_shape_;
  std::array<int64_t, 1> valid_{0};
  float scale_ = 0.0f;
};

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::cerr << "usage: deploy policy.onnx < observations\n";
    return 2;
  }
  Policy policy(argv[1]);
  std::cerr << "one line every " << 1000.0f / policy.rate_hz << " ms\n";
  std::cout << std::setprecision(9);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream stream(line);
    std::vector<float> obs;
    for (float value; stream >> value;) obs.push_back(value);
    if (obs.empty()) {
      policy.reset();
      continue;
    }
    const char* gap = "";
    for (float target : policy.step(obs)) {
      std::cout << gap << target;
      gap = " ";
    }
    std::cout << std::endl;
  }
  return EXIT_SUCCESS;
} catch (const std::exception& error) {
  std::cerr << "deploy: " << error.what() << "\n";
  return EXIT_FAILURE;
}
