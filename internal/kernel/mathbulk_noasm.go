//go:build !amd64 || noasm

package kernel

// Without assembly the bulk loops of vector mathematics process nothing and leave all elements to the twins.

func addBulk(_, _, _ []float32) (n int) { return 0 }

func subBulk(_, _, _ []float32) (n int) { return 0 }

func mulBulk(_, _, _ []float32) (n int) { return 0 }

func divBulk(_, _, _ []float32) (n int) { return 0 }

func maxBulk(_, _, _ []float32) (n int) { return 0 }

func minBulk(_, _, _ []float32) (n int) { return 0 }

func axpyBulk([]float32, float32, []float32) (n int) { return 0 }

func addScalarBulk(_, _ []float32, _ float32) (n int) { return 0 }

func scalarSubBulk(_, _ []float32, _ float32) (n int) { return 0 }

func mulScalarBulk(_, _ []float32, _ float32) (n int) { return 0 }

func divScalarBulk(_, _ []float32, _ float32) (n int) { return 0 }

func scalarDivBulk(_, _ []float32, _ float32) (n int) { return 0 }

func maxScalarBulk(_, _ []float32, _ float32) (n int) { return 0 }

func minScalarBulk(_, _ []float32, _ float32) (n int) { return 0 }

func scaleShiftBulk(_, _ []float32, _, _ float32) (n int) { return 0 }

func absBulk(_, _ []float32) (n int) { return 0 }

func dotRowsBulk(_, _, _ []float32, _ int, _ float32) (n int) { return 0 }

func negBulk(_, _ []float32) (n int) { return 0 }

func reluBulk(_, _ []float32) (n int) { return 0 }

func leakyReluBulk(_, _ []float32, _ float32) (n int) { return 0 }

func clipBulk(_, _ []float32, _, _ float32) (n int) { return 0 }

func hardSigmoidBulk(_, _ []float32, _, _ float32) (n int) { return 0 }

func hardSwishBulk(_, _ []float32) (n int) { return 0 }

func sqrtBulk(_, _ []float32) (n int) { return 0 }

func expBulk(_, _ []float32) (n int) { return 0 }

func sigmoidBulk(_, _ []float32) (n int) { return 0 }

func siluBulk(_, _ []float32) (n int) { return 0 }

func geluTanhBulk(_, _ []float32) (n int) { return 0 }

func tanhBulk(_, _ []float32) (n int) { return 0 }

func erfBulk(_, _ []float32) (n int) { return 0 }

func geluBulk(_, _ []float32) (n int) { return 0 }

func logBulk(_, _ []float32) (n int) { return 0 }

func softplusBulk(_, _ []float32) (n int) { return 0 }

func sinBulk(_, _ []float32) (n int) { return 0 }

func cosBulk(_, _ []float32) (n int) { return 0 }

func sumBulk(*sumLanes, []float32) (n int) { return 0 }

func dotBulk(_ *sumLanes, _, _ []float32) (n int) { return 0 }

func squaresBulk(*sumLanes, []float32, float64) (n int) { return 0 }

func expSumStoreBulk(_ *sumLanes, _, _ []float32, _ float64) (n int) { return 0 }

func expSumBulk(*sumLanes, []float32, float64) (n int) { return 0 }

func subTwiceBulk(_, _ []float32, _, _ float64) (n int) { return 0 }

func scaleAboutBulk(_, _, _ []float32, _, _ float64) (n int) { return 0 }

func scaleShiftAboutBulk(_, _, _, _ []float32, _, _ float64) (n int) { return 0 }

func dequantizeInt32Bulk([]float32, []int32, float32) (n int) { return 0 }

func dequantizeInt32ColsBulk(_ []float32, _ []int32, _, _ []float32) (cols int) { return 0 }

func (*AdamStep) bulk(_, _, _, _ []float32) (n int) { return 0 }
