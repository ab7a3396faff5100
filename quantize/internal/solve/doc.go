// Package solve quantizes the weights of linear layers: round to nearest with MSE-optimal scales, HQQ (Badri and Shaji
// 2023), GPTQ (Frantar et al. 2022, arXiv:2210.17323) and the scaling of AWQ (Lin et al. 2023, arXiv:2306.00978).
//
// A layer is y = x·W with W of K rows by N columns. It must not know models, files, or the origin of samples.
package solve
