package prune

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune/internal/eigen"
)

// A decomposition is the singular value decomposition of a weight.
type decomposition struct {
	vectors *ir.Tensor // as rows, of the smaller side, largest singular value first
	sums    []float64  // of squares of the first singular values: sums[r] of r of them
}

// energy is the fraction of the sum of all squares that r singular values hold.
func (s *decomposition) energy(r int64) float64 {
	if all := s.sums[len(s.sums)-1]; all > 0 {
		return s.sums[r] / all
	}
	return 1
}

// norm is the largest singular value, which no element of a factor exceeds.
func (s *decomposition) norm() float64 { return math.Sqrt(s.sums[1]) }

// decompose finds the decomposition of f's weight, with vectors for ranks up to most: singular
// vectors of the smaller side are the eigenvectors of the weight's product with itself, at a
// fraction of what the decomposition itself costs. Squares in float64 have twice the digits
// of float32, so their error is below the rounding of the weight.
// Vectors are computed once and kept as an intermediate result.
func decompose(ctx context.Context, step *pass.Step, f *factorization, most int64) (*decomposition, error) {
	side := min(f.rows, f.cols)
	dt := f.w.before.DType
	if dt != ir.Double {
		dt = ir.Float
	}
	r := &ir.Recipe{
		Name: step.Method, In: []*ir.Tensor{f.w.before},
		Out: []ir.Spec{{Name: f.w.v.Name, DType: dt, Shape: []int64{most, side}},
			{Name: f.w.v.Name, DType: ir.Double, Shape: []int64{side}}},
		Work: 8 * (f.rows*f.cols + 3*side*side),
		Run: func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
			return f.spectrum(in[0], out, most, step.Env.Workers)
		},
	}
	made := r.Derive()
	b, err := step.Eval.ReadAll(ctx, made[1])
	if err != nil {
		return nil, err
	}
	s := &decomposition{vectors: made[0], sums: make([]float64, 1, side+1)}
	for i, v := range kernel.Words[float64](b) {
		s.sums = append(s.sums, s.sums[i]+max(v, 0))
	}
	return s, ctx.Err()
}

// spectrum writes vectors and squares of singular values.
func (f *factorization) spectrum(in io.ReaderAt, out []io.Writer, most int64, workers int) error {
	x, err := f.matrix(in)
	if err != nil {
		return err
	}
	if f.rows > f.cols {
		x = transpose(x, f.rows, f.cols)
	}
	side, length := min(f.rows, f.cols), max(f.rows, f.cols)
	values, vectors, err := eigen.Symmetric(gram(x, side, length, workers), int(side), int(most), workers)
	if err != nil {
		return &pass.Unfit{Tensor: f.w.v.Name, Reason: pass.Reason{Code: pass.NotConverged}}
	}
	dt := f.w.before.DType
	if dt != ir.Double {
		dt = ir.Float
	}
	if err := writeFloats(out[0], vectors, dt); err != nil {
		return err
	}
	return writeFloats(out[1], values, ir.Double)
}

// matrix reads f's weight, rows × cols.
func (f *factorization) matrix(in io.ReaderAt) ([]float64, error) {
	x, err := readFloats(in, f.w.before)
	if err != nil {
		return nil, err
	}
	if !allFinite(x) {
		return nil, &pass.Unfit{Tensor: f.w.v.Name, Reason: notFinite}
	}
	if f.transposed {
		x = transpose(x, f.cols, f.rows)
	}
	return x, nil
}

// factors describes the two factors at rank r: the vectors, and the weight's product with
// them.
func (s *decomposition) factors(f *factorization, r int64) (a, b *ir.Tensor) {
	dt := f.w.before.DType
	recipe := &ir.Recipe{
		Name: "lowrank", In: []*ir.Tensor{f.w.before, s.vectors},
		Out:  []ir.Spec{{Name: f.w.v.Name, DType: dt, Shape: f.shapeA(r)}, {Name: f.w.v.Name, DType: dt, Shape: f.shapeB(r)}},
		Work: 8 * (2*f.rows*f.cols + 2*r*(f.rows+f.cols)),
		Run: func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
			x, err := f.matrix(in[0])
			if err != nil {
				return err
			}
			u, err := readFloats(in[1], firstRows(s.vectors, r))
			if err != nil {
				return err
			}
			a, b := f.multiply(x, u, r)
			if most := max(absMax(a), absMax(b)); most > dt.Largest() {
				return &pass.Unfit{Tensor: f.w.v.Name, Reason: pass.Reason{Code: pass.NotRepresented,
					Detail: fmt.Sprintf("factors up to %g in %s", most, dt)}}
			}
			if err := writeFloats(out[0], a, dt); err != nil {
				return err
			}
			return writeFloats(out[1], b, dt)
		},
	}
	ts := recipe.Derive()
	return ts[0], ts[1]
}

// multiply makes the factors of x from vectors, r rows. Those of the shorter side are one
// factor; the other one is what x is along them.
func (f *factorization) multiply(x, vectors []float64, r int64) (a, b []float64) {
	if f.rows <= f.cols {
		return transpose(vectors, r, f.rows), times(vectors, x, r, f.rows, f.cols)
	}
	v := transpose(vectors, r, f.cols)
	return times(x, v, f.rows, f.cols, r), vectors
}

// shapeA and shapeB are the shapes of the factors as their products read them.
func (f *factorization) shapeA(r int64) []int64 {
	shape := []int64{f.rows, r}
	for range max(len(f.kernel)-1, 0) {
		shape = append(shape, 1)
	}
	return shape
}

func (f *factorization) shapeB(r int64) []int64 {
	if f.kernel != nil {
		return append([]int64{r}, f.kernel...)
	}
	return []int64{r, f.cols}
}

// errorBound is what the factors of rank r must hold: the square of the error is that of the other singular values
// (Eckart and Young), as far as the factors and their product are rounded.
func (s *decomposition) errorBound(f *factorization, name string, r int64) *pass.Bound {
	rounding := 0x1p-14
	switch f.w.before.DType {
	case ir.Float16:
		rounding = 0x1p-7
	case ir.BFloat16:
		rounding = 0x1p-4
	}
	all := s.sums[len(s.sums)-1]
	most := math.Sqrt(max(0, all-s.sums[r])) + rounding*math.Sqrt(all)
	return &pass.Bound{
		Of:      f.w.before,
		Tensors: func(parts []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{f.product(name, parts[0], parts[1])} },
		New: func(context.Context, io.ReaderAt, func(pass.Reason)) (func(x []float32, y [][]float32) string, error) {
			sum := 0.0
			return func(x []float32, y [][]float32) string {
				for i, v := range x {
					d := float64(v) - float64(y[0][i])
					sum += float64(d * d)
				}
				if len(x) == 0 && !(math.Sqrt(sum) <= most) {
					return fmt.Sprintf("the error has norm %g, that of rank %d is %g", math.Sqrt(sum), r, most)
				}
				return ""
			}, nil
		},
	}
}

// firstRows is the first r rows of t.
func firstRows(t *ir.Tensor, r int64) *ir.Tensor {
	return &ir.Tensor{Spec: ir.Spec{Name: t.Name, DType: t.DType, Shape: []int64{r, t.Shape[1]}}}
}

// product describes the product of the factors in the shape of the weight.
func (f *factorization) product(name string, a, b *ir.Tensor) *ir.Tensor {
	r := b.Shape[0]
	recipe := &ir.Recipe{
		Name: name, In: []*ir.Tensor{a, b}, Out: []ir.Spec{f.w.before.Spec},
		Work: 8 * (2*f.rows*f.cols + r*(f.rows+f.cols)),
		Run: func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
			x, err := readFloats(in[0], a)
			if err != nil {
				return err
			}
			y, err := readFloats(in[1], b)
			if err != nil {
				return err
			}
			z := times(x, y, f.rows, r, f.cols)
			if f.transposed {
				z = transpose(z, f.rows, f.cols)
			}
			return writeFloats(out[0], z, f.w.before.DType)
		},
	}
	return recipe.Derive()[0]
}
