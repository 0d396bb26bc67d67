// A device of its own in the host's memory: what an accelerator refuses, this one refuses too.
//
// Kernels are those of the CPU, on copies. Before each, its arguments are looked at: a tensor of another device (other
// than a single number) or a generator of another device is an error, as on a real accelerator. Random numbers come
// from the device's own generator. With FOREIGN_WITHOUT_FLOAT64, it has no float64, as Apple's has none.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <cstdlib>
#include <cstring>

namespace {

constexpr auto KIND = c10::DeviceType::PrivateUse1;
constexpr c10::DeviceIndex COUNT = 2;

const bool without_float64 = std::getenv("FOREIGN_WITHOUT_FLOAT64") != nullptr;

void check_type(at::ScalarType type) {
  TORCH_CHECK_TYPE(!without_float64 || (type != at::kDouble && type != at::kComplexDouble),
                   "a tensor of the foreign device cannot be float64");
}

thread_local c10::DeviceIndex current = 0;

struct Guard final : c10::impl::DeviceGuardImplInterface {
  static constexpr c10::DeviceType static_type = KIND;
  explicit Guard(c10::DeviceType = KIND) {}
  c10::DeviceType type() const override { return KIND; }
  c10::Device getDevice() const override { return {KIND, current}; }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(0 <= device.index() && device.index() < COUNT, "there is no device ", device);
    current = device.index();
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override { current = device.index(); }
  c10::Device exchangeDevice(c10::Device device) const override {
    auto before = getDevice();
    setDevice(device);
    return before;
  }
  c10::DeviceIndex deviceCount() const noexcept override { return COUNT; }
  c10::Stream getStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return stream; }
  void synchronizeDevice(c10::DeviceIndex) const override {}
};

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return COUNT; }
  c10::DeviceIndex getCurrentDevice() const override { return current; }
  at::Allocator* getPinnedMemoryAllocator() const override { return c10::GetCPUAllocator(); }
};

struct Memory final : c10::Allocator {
  at::DataPtr allocate(size_t bytes) override {
    void* data = std::malloc(bytes == 0 ? 1 : bytes);
    return {data, data, &std::free, c10::Device(KIND, current)};
  }
  at::DeleterFnPtr raw_deleter() const override { return &std::free; }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
};

Memory memory;

at::Generator& own_generator() {
  static at::Generator generator = at::detail::createCPUGenerator(0);
  return generator;
}

c10::DeviceGuard on(std::optional<c10::Device> device) { return c10::DeviceGuard(device.value_or(c10::Device(KIND))); }

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> type, std::optional<at::Layout>,
                 std::optional<c10::Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  auto guard = on(device);
  auto found = type.value_or(at::typeMetaToScalarType(at::get_default_dtype()));
  check_type(found);
  return at::detail::empty_generic(size, &memory, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), found, format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> type,
                         std::optional<at::Layout>, std::optional<c10::Device> device, std::optional<bool>) {
  auto guard = on(device);
  auto found = type.value_or(at::typeMetaToScalarType(at::get_default_dtype()));
  check_type(found);
  auto keys = c10::DispatchKeySet(c10::DispatchKey::PrivateUse1);
  return at::detail::empty_strided_generic(size, stride, &memory, keys, found);
}

// The same numbers as a tensor of the CPU, without a copy.
at::Tensor on_host(const at::Tensor& tensor) {
  if (tensor.device().type() != KIND) return tensor;
  auto options = tensor.options().device(at::kCPU).requires_grad(false);
  auto found = at::from_blob(const_cast<void*>(tensor.const_data_ptr()), tensor.sizes(), tensor.strides(), options);
  if (tensor.is_conj()) found._set_conj(true);
  if (tensor.is_neg()) found._set_neg(true);
  return found;
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& to, bool) {
  on_host(to).copy_(on_host(self));
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& to) {
  at::native::resize_(to, self.sizes());
  return copy_from(self, to, false);
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source, int64_t offset, at::IntArrayRef size,
                        at::IntArrayRef stride) {
  self.unsafeGetTensorImpl()->set_storage_keep_dtype(std::move(source));
  self.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride, offset);
  return self;
}

at::Tensor& set_whole_storage(at::Tensor& self, at::Storage source) {
  const auto count = static_cast<int64_t>(source.nbytes() / self.itemsize());
  return set_storage(self, std::move(source), 0, {count}, {1});
}

void look_at(const std::string& name, const at::Tensor& tensor, std::optional<c10::Device>& device) {
  if (!tensor.defined()) return;
  if (tensor.device().is_cpu() && tensor.dim() == 0) return;
  if (!device.has_value()) device = tensor.device();
  TORCH_CHECK(tensor.device() == *device, "Expected all tensors to be on the same device, but found at least two, ",
              *device, " and ", tensor.device(), " (in ", name, ")");
}

// Convolutions have no fallback of their own: torch hands them over by these names.
at::Tensor convolution(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                       at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                       at::IntArrayRef output_padding, int64_t groups) {
  std::optional<c10::Device> device = x.device();
  look_at("convolution", weight, device);
  std::optional<at::Tensor> own;
  if (bias.has_value() && bias->defined()) {
    look_at("convolution", *bias, device);
    own = on_host(*bias);
  }
  return at::convolution(on_host(x), on_host(weight), own, stride, padding, dilation, transposed, output_padding, groups)
      .to(x.device());
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& slope, const at::Tensor& x, const at::Tensor& weight, at::IntArrayRef stride,
    at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed, at::IntArrayRef output_padding, int64_t groups,
    std::array<bool, 3> wanted) {
  const int64_t outputs = slope.size(1);
  auto found = at::convolution_backward(on_host(slope), on_host(x), on_host(weight), at::IntArrayRef(&outputs, 1), stride,
                                        padding, dilation, transposed, output_padding, groups, wanted);
  auto back = [&](const at::Tensor& each) { return each.defined() ? each.to(x.device()) : each; };
  return {back(std::get<0>(found)), back(std::get<1>(found)), back(std::get<2>(found))};
}

// Its schema does not tell that it changes the running moments: the fallback would lose them.
std::tuple<at::Tensor, at::Tensor, at::Tensor> batch_norm(
    const at::Tensor& x, const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias,
    const std::optional<at::Tensor>& mean, const std::optional<at::Tensor>& variance, bool training, double momentum,
    double epsilon) {
  std::optional<c10::Device> device = x.device();
  auto host = [&](const std::optional<at::Tensor>& each) -> std::optional<at::Tensor> {
    if (!each.has_value() || !each->defined()) return std::nullopt;
    look_at("native_batch_norm", *each, device);
    return on_host(*each);
  };
  auto [result, saved, inverse] = at::native_batch_norm(on_host(x), host(weight), host(bias), host(mean),
                                                        host(variance), training, momentum, epsilon);
  return {result.to(x.device()), saved.to(x.device()), inverse.to(x.device())};
}

// Neither has the cell of an LSTM: the kernel of accelerators, in operations that the CPU has.
std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                                                         const at::Tensor& cell,
                                                         const std::optional<at::Tensor>& input_bias,
                                                         const std::optional<at::Tensor>& hidden_bias) {
  auto gates = input_gates + hidden_gates;
  if (input_bias.has_value() && input_bias->defined()) gates = gates + *input_bias + *hidden_bias;
  auto parts = gates.chunk(4, 1);
  auto in = parts[0].sigmoid(), forget = parts[1].sigmoid(), now = parts[2].tanh(), out = parts[3].sigmoid();
  auto next = forget * cell + in * now;
  return {out * next.tanh(), next, at::cat({in, forget, now, out}, 1)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell_backward(const std::optional<at::Tensor>& hidden_slope,
                                                                  const std::optional<at::Tensor>& cell_slope,
                                                                  const at::Tensor& cell, const at::Tensor& next,
                                                                  const at::Tensor& gates, bool has_bias) {
  auto known = [&](const std::optional<at::Tensor>& slope) {
    return slope.has_value() && slope->defined() ? *slope : at::zeros_like(next);
  };
  auto parts = gates.chunk(4, 1);
  auto in = parts[0], forget = parts[1], now = parts[2], out = parts[3], bent = next.tanh();
  auto above = known(hidden_slope), slope = known(cell_slope) + above * out * (1 - bent * bent);
  auto found = at::cat({slope * now * in * (1 - in), slope * cell * forget * (1 - forget), slope * in * (1 - now * now),
                        above * bent * out * (1 - out)},
                       1);
  return {found, slope * forget, has_bias ? found.sum(0) : at::Tensor()};
}

bool takes_indices_of_the_host(const std::string& name) {
  return name == "aten::index" || name == "aten::index_put_" || name == "aten::_index_put_impl_";
}

void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const auto count = schema.arguments().size();
  std::optional<c10::Device> device;
  for (size_t number = 0; number < count; ++number) {
    auto& value = (*stack)[stack->size() - count + number];
    if (takes_indices_of_the_host(schema.name()) && number == 1) continue;
    if (value.isTensor()) look_at(schema.name(), value.toTensor(), device);
    if (value.isTensorList())
      for (const at::Tensor& each : value.toTensorVector()) look_at(schema.name(), each, device);
    if (value.isOptionalTensorList())
      for (const std::optional<at::Tensor>& each : value.toOptionalTensorVector())
        if (each.has_value()) look_at(schema.name(), *each, device);
    if (schema.arguments()[number].type()->str().find("Generator") == std::string::npos) continue;
    TORCH_CHECK(value.isNone(), "Expected a generator of the foreign device but found one of the CPU (in ",
                schema.name(), ")");
    value = own_generator();
  }
  at::native::cpu_fallback(op, stack);
}

void seed(int64_t value) { own_generator().set_current_seed(static_cast<uint64_t>(value)); }
at::Tensor state() { return own_generator().get_state(); }
void set_state(const at::Tensor& value) { own_generator().set_state(value); }

struct Registered {
  Registered() {
    c10::SetAllocator(KIND, &memory);
    at::RegisterPrivateUse1HooksInterface(new Hooks());
  }
} at_load;

}  // namespace

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>()); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("as_strided", at::native::as_strided_tensorimpl);
  m.impl("view", at::native::view);
  m.impl("_reshape_alias", at::native::_reshape_alias);
  m.impl("resize_", at::native::resize_);
  m.impl("set_.source_Storage_storage_offset", set_storage);
  m.impl("set_.source_Storage", set_whole_storage);
  m.impl("unfold", at::native::unfold);
  m.impl("convolution_overrideable", convolution);
  m.impl("convolution_backward_overrideable", convolution_backward);
  m.impl("native_batch_norm", batch_norm);
  m.impl("_thnn_fused_lstm_cell", lstm_cell);
  m.impl("_thnn_fused_lstm_cell_backward_impl", lstm_cell_backward);
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
}

TORCH_LIBRARY(foreign, m) {
  m.def("seed(int value) -> ()", seed);
  m.def("state() -> Tensor", state);
  m.def("set_state(Tensor value) -> ()", set_state);
}
