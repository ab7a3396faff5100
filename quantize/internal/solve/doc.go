// Package solve rounds the weights of linear layers so that what the layers give changes least, by the second
// moments of what they are given: GPTQ (Frantar et al. 2022, arXiv:2210.17323) and the scaling of AWQ (Lin et al. 2023,
// arXiv:2306.00978).
//
// A layer is y = x·W with W of K rows by N columns. An error E of W costs tr(Eᵀ·H·E), where H is the sum of xᵀ·x over the
// samples. It must not know models, files, or where samples come from.
package solve
