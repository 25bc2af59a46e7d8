"""Parts of profiles that no benchmark names: communication and copies of any program, and what the
kernels of TensorFlow and PyTorch do.

A kernel is known by its name alone. The names are those that cuBLAS, cuDNN, CUTLASS, Eigen, NCCL
and the frameworks give their kernels, as ``nsys stats``, nvprof, TensorBoard and PyTorch's profiler
print them; the first part one of whose patterns is found takes it. Names tell what a kernel is, not
for which layer it ran: a convolution that cuDNN computes as ``volta_sgemm_128x64_nn`` is a matrix
product here, the sum of a bias' gradient a reduction, and an expression of Eigen that belongs to
the optimizer is elementwise.
"""

from collections.abc import Mapping, Sequence

_ANY_CASE = "(?i)"
# Kernels that TorchInductor makes: of elementwise work and reductions, named after all operations
# that they belong to ("triton_poi_fused_convolution_relu_7" adds a bias to a convolution's result).
_NOT_FUSED = r"(?s)^(?!triton_(?:poi|red|per|for)_).*"


def _any(*words: str) -> list[str]:
    """Patterns that find a word in upper or lower case."""
    return [_ANY_CASE + word for word in words]


def _any_not_fused(*words: str) -> list[str]:
    """The same, but not in kernels that fuse what is around the operation of this name."""
    return [f"(?i){_NOT_FUSED}(?:{word})" for word in words]


# Communication and copies look the same in every program, on the host too.
DEFAULT_PARTS: Mapping[str, Sequence[str]] = {
    "mpi": [r"^P?MPI_", r"^(?:point_to_point|collective)_mpi"],  # the latter are MAP's activities
    "collectives": [
        r"(?i)nccl|rccl|^(?:GLOO|CCL)_ALL(?:REDUCE|GATHER)",
        *_any("(?<![a-z])all_?reduce", "cross_device_reduce", r"\bdeep_ep::"),
    ],
    # The latter are ROCm's: kernels, and what rocprof calls copies of its copy engines.
    "copies": [
        r"(?i)\bmem(?:cpy|set)\b",
        r"__amd_rocclr_(?:copy|fill)Buffer|^Copy(?:Host|Device)To(?:Host|Device)$",
    ],
}
# The order decides: attention and convolutions are built of matrix products, optimizers and
# norms of elementwise kernels and reductions.
KERNEL_PARTS: Mapping[str, Sequence[str]] = {
    **DEFAULT_PARTS,
    "optimizer": [
        r"Apply(?:Adam|Adagrad|Adadelta|GradientDescent|Momentum|KerasMomentum|RMSProp|Ftrl|Lamb)",
        r"Adam(?!Optimizer/gradients)|Adagrad|RMSProp|NovoGrad|LAMB(?!DA)|Lamb[A-Z]|LARS",
        r"FusedOptimizer|fused_adam|fused_sgd|SGDFunctor|SparseApply|multi_tensor_apply",
    ],
    "attention": _any_not_fused(
        "flash_?(?:fwd|bwd|attn|attention|api)", "fmha", "sdpa", "attention", "attn_"
    ),
    "convolution": [
        *_any_not_fused(
            r"conv(?:olv|olution|_|[123]d|fwd|bwd|depthwise|kernel)",
            "depthwise",
            "winograd",
            "scudnn",
            "cudnn_(?:infer_|train_)?.*(?:fprop|dgrad|wgrad)",
            r"(?:^|[^a-z])(?:fprop|dgrad|wgrad)(?:[^a-z]|$)",
            "dgrad_engine|wgrad_alg|computeWgrad|compute[BC]?Offsets|compute_gemm_pointers",
            "im2col|col2im|vol2col|igemm_(?:fwd|bwd|wrw)_",  # the latter: MIOpen's
            r"fft[123]d_[rc]2[rc]|vector_fft|DSE::|flip_filter|_[cg]cgemm_|pointwise_mult_and_sum",
        ),
        r"cutlass(?:__5x)?_cudnn|cudnn::(?:cnn|gemm|detail::(?:implicit|dgrad|wgrad))",
    ],
    "matrix": [
        *_any_not_fused("gemm", "gemv", "matmul", "matrixmul", "splitK_?reduce", "cublas"),
        r"^triton_(?:tem_fused_)?(?:\w*_)?(?:add|b)?mm(?:_|$)",
        r"nvjet|cutlass|tensorop|s\d{3,5}(?:gemm|mma)|hmma|Cijk_|EigenContraction|dot_kernel|magma",
        r"batched_?dot|reduce_1Block_kernel",
    ],
    "norm": _any(
        r"bn_(?:fw|bw)_|bnorm|batch_?norm",
        "(?:layer|group|rms|instance)_?norm",
        "cuda_?compute_?grad_?gamma|GammaBeta|vectorized_layer|RowwiseMoments",
    ),
    "pooling": _any("pooling", "(?:max|avg|average)_?pool"),
    "bias": [r"Bias(?:NHWC|NCHW|Grad|Add|Activation)", r"(?i)add_?bias|bias_?(?:add|grad|act)"],
    "reduction": [
        *_any("softmax", "GenerateNormalizedProb", "cross_?entropy|nll_loss", r"arg_?(?:max|min)"),
        *_any("reduce", "reduction", r"cub::.*(?:Scan|Sort|Segmented)", "triton_(?:red|per)_"),
        *_any("cumsum|cumprod|topk|top_k|sort", "norm_?kernel|l2norm", "CleanupSegments"),
    ],
    "layout": [
        *_any(r"n[cd]?hw(?:c)?2?_?to_?n|nchwToNhwc|nhwcToNchw|ToFolded|foldedTo|AddPadding"),
        *_any("transpose|permute|SwapDimension|ShuffleInTensor|TensorShuffling|convertTensor"),
        *_any("concat|CatArray|split_(?:kernel|v|with)|stack_kernel|TensorSlicing|TensorPadding"),
        *_any("TensorStriding|TensorChipping|TensorReverse|TensorBroadcasting|TensorConcat"),
        *_any("gather|scatter|index(?:ing|_|Select|Func)|embedding|take_along|strided_slice"),
        *_any(r"direct_copy|copy_(?:kernel|device)|unrolled_copy|pad_|padding|upsample|resize"),
        r"_Cast_|Cast_GPU|TensorConversionOp|SetZero|SetToValue",
    ],
    "elementwise": [
        r"EigenMetaKernel|_GPU_DT_|GpuKernel|Functor",
        *_any("element_?wise|pointwise|triton_poi|^(?:loop|wrapped)_", "dropout|distribution_"),
        *_any("relu|gelu|silu|sigmoid|tanh|swish|add_tensor|op_tensor|activation"),
        *_any("scalePackedTensor|scale_tensor"),
        *_any("FillPhilox|random|rng|curand|fill_|tensor_kernel_scalar"),
    ],
}
