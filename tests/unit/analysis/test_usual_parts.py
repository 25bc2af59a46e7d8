"""Which part a kernel belongs to where no benchmark says it.

Names as profilers print them: ExaRL's issue 84 (TensorFlow on an A100), traces in
facebookresearch/HolisticTraceAnalysis (PyTorch on V100, A100 and MI250), kernel tables of
TensorBoard's profiler.
"""

from pathlib import Path

import pytest

from scalesweep.analysis.profile import Function, Profile, function_entries, parts_of

KERNELS = {
    "collectives": [
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "void vllm::cross_device_reduce_1stage<c10::BFloat16, 2>(vllm::RankData*)",
    ],
    "optimizer": [
        "void tensorflow::functor::ApplyAdamKernel<float>(int, float*, float*, float*, float c?",
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous "
        "namespace)::FusedOptimizerTensorListMetadata<4>, FusedAdamMathFunctor<float, 4>>",
    ],
    "attention": [
        "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64, 64, 4, false, false>>",
        "fmha_cutlassB_f32_aligned_64x64_k64",
        "cudnn_generated_fort_native_sdpa_sm100_flash_bprop_f16_knob_7_128x128x64",
    ],
    "convolution": [
        "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckcrs_nhwc_tilesize128x128x32",
        "void cudnn::winograd_nonfused::winogradWgradOutput4x4<float, float>(cudnn::winograd)",
        "void cutlass_cudnn::Kernel<cutlass_cudnn::reduction::kernel::ReduceSplitK<4>>",
        "cudnn::gemm::computeWgradBOffsetsKernel(cudnn::gemm::ComputeBOffsetsParams)",
        "triton_tem_fused_convolution_5",
        "igemm_fwd_gtcx3_nhwc_fp16_bx0_ex0_bt256x128x32_wt32x32x8",
    ],
    "matrix": [
        "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align1>(cutlass_80_t?",
        "ampere_sgemm_32x32_sliced1x4_nt",
        "nvjet_tst_192x192_64x4_1x2_h_bz_coopB_TNN",
        "void splitKreduce_kernel<float, float, float, float>(cublasSplitKParams<float>, float*)",
        "Cijk_Ailk_Bljk_SB_MT64x64x16_SE_APM1_AF0EM1_AF1EM1",
        "triton_tem_fused_addmm_relu_4",
    ],
    "norm": [
        "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1>(cudnnTensorStruct)",
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>",
    ],
    "bias": [
        "void tensorflow::BiasNHWCKernel<float>(int, float const*, float const*, float*, int)"
    ],
    "reduction": [
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, MeanOps<float>>>",
        "triton_per_fused__softmax_3",
        "triton_red_fused_convolution_backward_0",
    ],
    "layout": [
        "void cudnn::ops::nchwToNhwcKernel<__half, __half, float, true, false>(nchw2nhwc_params_t)",
        "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::T",
    ],
    "elementwise": [
        "void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<Eigen::TensorAssignOp<?",
        "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>",
        "Mul_GPU_DT_FLOAT_DT_FLOAT_kernel",
        "triton_poi_fused_convolution_relu_7",
        "triton_poi_fused__scaled_dot_product_flash_attention_1",
        "void thrust::cuda_cub::core::_kernel_agent<__parallel_for::LAMBDA, Functor>(long)",
    ],
    "copies": ["__amd_rocclr_copyBuffer.kd", "CopyHostToDevice"],
    "other": ["frameKernel(Body*, int)", "fusion_113", "triton__0d1d2d3d", "mmul(float*, int)"],
}


def profile_of(names: list[str], kind: str) -> Profile:
    return Profile(
        "x", Path("x"), functions=tuple(Function(name, None, kind, 1, 1.0, 1.0) for name in names)
    )


@pytest.mark.parametrize("part", KERNELS)
def test_kernels_have_their_part_by_name(part: str) -> None:
    entries = function_entries(profile_of(KERNELS[part], "kernel"))
    assert {entry["name"]: entry["part"] for entry in entries} == dict.fromkeys(KERNELS[part], part)


def test_functions_of_a_host_are_no_kernels_and_own_parts_replace_all() -> None:
    hosts = ["conv_check", "reduce_grid", "MPI_Allreduce()", "PMPI_Wait", "normalize_density"]
    parts = parts_of(profile_of(hosts, "cpu"))
    assert {part: seconds.sum() for part, seconds in parts.items()} == {"mpi": 2, "other": 3}
    kernels = profile_of([*KERNELS["matrix"], *KERNELS["collectives"]], "kernel")
    own = parts_of(kernels, {"mine": ["gemm"]})
    assert set(own) == {"mine", "other"} and own["mine"].sum() == 2
