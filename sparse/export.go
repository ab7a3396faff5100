package sparse

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// Export writes the weight of each row that got a sparse form into dir, as a file
// NAME.npz that scipy.sparse.load_npz reads: coo, and bsr whose blocks divide the matrix, as themselves, the other
// forms as csr. A weight of another rank than 2 becomes the matrix [first dimension, rest], or one row; float16 and
// bfloat16 become float32, as SciPy has no sparse matrices of them; equal weights are written once. Characters that are
// not portable in file names become "_". e is what the run evaluated tensors with, and its input is still open. The
// files are published by set.
func Export(ctx context.Context, e *ir.Eval, rows []pass.Row, dir string, set *atomicfile.Set) error {
	if err := set.MakeDir(dir); err != nil {
		return err
	}
	taken := map[string]bool{}
	for _, r := range rows {
		if r.Status != pass.Changed || !isForm(r.Form) || r.SharedWith != "" {
			continue
		}
		if err := export(ctx, e, r, set, filepath.Join(dir, fileName(r.Tensor, taken))); err != nil {
			return fmt.Errorf("export tensor %q: %w", r.Tensor, err)
		}
	}
	return nil
}

func isForm(f pass.Form) bool {
	switch f {
	case pass.COO, pass.CSR, pass.BSR, pass.Bitmask, pass.Delta:
		return true
	}
	return false
}

// maxName keeps file names within what every file system takes.
const maxName = 100

// fileName is a portable one for a tensor, not taken before, on file systems too that
// do not tell capitals.
func fileName(tensor string, taken map[string]bool) string {
	safe := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("._-", r) {
			return r
		}
		return '_'
	}, tensor)
	safe = safe[:min(len(safe), maxName)]
	if strings.Trim(safe, ".") == "" || safe[0] == '.' {
		safe = "_" + safe
	}
	name := safe
	for i := 2; taken[strings.ToLower(name)]; i++ {
		name = fmt.Sprintf("%s-%d", safe, i)
	}
	taken[strings.ToLower(name)] = true
	return name + ".npz"
}

// export writes one file.
func export(ctx context.Context, e *ir.Eval, r pass.Row, set *atomicfile.Set, path string) error {
	// From the dense weight and not from the form: SciPy's arrays are others, and one encoder writes them.
	in, err := e.Open(ctx, r.Before)
	if err != nil {
		return err
	}
	x, err := exportMatrix(ctx, in, r)
	if err != nil {
		return err
	}
	return set.WriteFile(path, func(w io.Writer) error { return x.write(ctx, in, w) })
}

// A matrixFile is a sparse matrix as SciPy stores it.
type matrixFile struct {
	format     string
	rows, cols int64
	arrays     []array // one for each output of encode
	encode     func(ctx context.Context, in io.ReaderAt, out []io.Writer) error
}

type array struct {
	name  string
	dtype ir.DType
	shape []int64
	lead  []byte // elements that encode does not write
}

// exportMatrix is r's weight, counted anew: a quantized value is a zero here if its bits are.
func exportMatrix(ctx context.Context, in io.ReaderAt, r pass.Row) (*matrixFile, error) {
	t := tensor{Spec: r.Before.Spec}
	if r.Form == pass.BSR {
		stored := r.After[0].Shape
		if l := bsrOf(t, Block{Rows: stored[1], Cols: stored[2]}, 0); l.whole() {
			return blockFile(ctx, in, l)
		}
	}
	err := t.eachBlock(ctx, in, func(_, mask []byte, _ int64) error {
		for range ones(mask) {
			t.nnz++
		}
		return nil
	})
	if r.Form == pass.COO {
		return coordinateFile(t), err
	}
	return rowFile(t), err
}

func rowFile(t tensor) *matrixFile {
	l := csrOf(t)
	l.column = ir.Int32
	return &matrixFile{"csr", l.rows, l.cols, []array{
		{"data", t.DType, []int64{t.nnz}, nil},
		{"indices", ir.Int32, []int64{t.nnz}, nil},
		{"indptr", ir.Int32, []int64{l.rows + 1}, bytesOf(ir.Int32, []int64{0})},
	}, l.encode}
}

func coordinateFile(t tensor) *matrixFile {
	rows, cols := t.matrix()
	encode := func(ctx context.Context, in io.ReaderAt, out []io.Writer) error {
		return t.split(ctx, in, out, false, func(bufs [][]byte, mask []byte, first, _ int64) {
			for i := range ones(mask) {
				bufs[0] = appendNumber(bufs[0], ir.Int32, (first+i)/cols)
				bufs[1] = appendNumber(bufs[1], ir.Int32, (first+i)%cols)
			}
		})
	}
	n := []int64{t.nnz}
	return &matrixFile{"coo", rows, cols, []array{{"data", t.DType, n, nil}, {"row", ir.Int32, n, nil},
		{"col", ir.Int32, n, nil}}, encode}
}

func blockFile(ctx context.Context, in io.ReaderAt, l bsr) (*matrixFile, error) {
	down, across := l.grid()
	err := l.eachBlock(ctx, in, func(int64, []byte) error {
		l.blocks++
		return nil
	})
	encode := func(ctx context.Context, in io.ReaderAt, out []io.Writer) error {
		row, blocks := int64(0), int64(0)
		endRows := func(upTo int64) (err error) {
			for ; row < upTo && err == nil; row++ {
				_, err = out[2].Write(appendNumber(nil, ir.Int32, blocks))
			}
			return err
		}
		err := l.eachBlock(ctx, in, func(index int64, block []byte) error {
			err := endRows(index / across)
			blocks++
			_, err1 := out[0].Write(block)
			_, err2 := out[1].Write(appendNumber(nil, ir.Int32, index%across))
			return errors.Join(err, err1, err2)
		})
		return errors.Join(err, endRows(down))
	}
	return &matrixFile{"bsr", l.rows, l.cols, []array{
		{"data", l.DType, []int64{l.blocks, l.block.Rows, l.block.Cols}, nil},
		{"indices", ir.Int32, []int64{l.blocks}, nil},
		{"indptr", ir.Int32, []int64{down + 1}, bytesOf(ir.Int32, []int64{0})},
	}, encode}, err
}

// write streams the file: the weight is read once for each array.
func (x *matrixFile) write(ctx context.Context, in io.ReaderAt, f io.Writer) error {
	z := npz{zip.NewWriter(f)}
	for i, a := range x.arrays {
		err := z.array(a.name, npyType(a.dtype), a.shape, func(w io.Writer) error { return x.elements(ctx, in, i, w) })
		if err != nil {
			return err
		}
	}
	err := z.array("shape", "<i8", []int64{2}, func(w io.Writer) error {
		_, err := w.Write(bytesOf(ir.Int64, []int64{x.rows, x.cols}))
		return err
	})
	if err != nil {
		return err
	}
	// A scalar of bytes, as scipy.sparse.save_npz writes it.
	err = z.array("format", "|S3", nil, func(w io.Writer) error {
		_, err := io.WriteString(w, x.format)
		return err
	})
	if err != nil {
		return err
	}
	return z.z.Close()
}

// elements writes those of array i.
func (x *matrixFile) elements(ctx context.Context, in io.ReaderAt, i int, w io.Writer) error {
	a := x.arrays[i]
	b := bufio.NewWriterSize(w, ir.CopyBuffer)
	if _, err := b.Write(a.lead); err != nil {
		return err
	}
	out := make([]io.Writer, len(x.arrays))
	// The encoder writes all arrays at once, a zip entry after the other: each array is another pass, so that none is in
	// memory.
	for k := range out {
		out[k] = io.Discard
	}
	out[i] = b
	if a.dtype == ir.Float16 || a.dtype == ir.BFloat16 {
		out[i] = &widener{w: b, dtype: a.dtype}
	}
	if err := x.encode(ctx, in, out); err != nil {
		return err
	}
	return b.Flush()
}

// A widener writes whole elements of a 16-bit float type as float32.
type widener struct {
	w     io.Writer
	dtype ir.DType
	buf   []float32
}

func (x *widener) Write(p []byte) (int, error) {
	n := len(p) / 2
	if cap(x.buf) < n {
		x.buf = make([]float32, n)
	}
	if err := pass.NewFloats(bytes.NewReader(p), x.dtype).Read(x.buf[:n], 0); err != nil {
		return 0, err
	}
	_, err := x.w.Write(kernel.Bytes(x.buf[:n]))
	return len(p), err
}
