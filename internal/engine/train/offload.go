package train

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// offloads are Offload and Restore: Offload writes a tensor to a file, so that its memory is free until Restore
// reads it. The token between them orders the nodes. Attributes are path, of a file that is created if missing,
// offset in it, and for Restore dtype and shape.
func offloads() []op.Op {
	return []op.Op{
		{Type: "Offload", Shape: offloadShape, Run: offload, Impure: true},
		{Type: "Restore", Shape: restoreShape, Run: restore, Impure: true},
	}
}

func checkPlace(n *op.Node) error {
	if n.Text("path", "") == "" {
		return errors.New("attribute path is missing")
	}
	if n.Int("offset", 0) < 0 {
		return fmt.Errorf("attribute offset is %d, want 0 or more", n.Int("offset", 0))
	}
	return nil
}

func offloadShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := op.Arg(in, 0, "x")
	if err != nil {
		return nil, err
	}
	if x.Kind != ir.Dense || x.DType == ir.String {
		return nil, fmt.Errorf("input x is %s, not a tensor of numbers", x)
	}
	return []ir.Spec{scalarSpec(ir.Uint8)}, checkPlace(n)
}

func offload(c *op.Call) error {
	err := withFile(c, os.O_WRONLY|os.O_CREATE, "is written away", func(f *os.File) error {
		_, err := f.WriteAt(c.In[0].Data, c.Int("offset", 0))
		return err
	})
	if err == nil && len(c.Out) > 0 && c.Out[0] != nil {
		c.Out[0].Data[0] = 1
	}
	return err
}

func restoreShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	if _, err := tensor(in, 0, "token", ir.Uint8); err != nil {
		return nil, err
	}
	spec := ir.Spec{DType: ir.DType(n.Int("dtype", 0)), Shape: n.Ints("shape")}
	if n.Int("dtype", 0) != int64(spec.DType) || !spec.DType.Known() || spec.DType == ir.String {
		return nil, fmt.Errorf("attribute dtype is %d, which is not a numeric type", n.Int("dtype", 0))
	}
	if err := spec.Valid(); err != nil {
		return nil, err
	}
	return []ir.Spec{spec}, checkPlace(n)
}

func restore(c *op.Call) error {
	return withFile(c, os.O_RDONLY, "is read back", func(f *os.File) error {
		_, err := f.ReadAt(c.Out[0].Data, c.Int("offset", 0))
		if err == io.EOF && len(c.Out[0].Data) == 0 {
			return nil
		}
		return err
	})
}

// withFile calls f with the file; what names the operation in errors.
func withFile(c *op.Call, how int, what string, f func(*os.File) error) error {
	path := c.Text("path", "")
	file, err := os.OpenFile(path, how, 0o600)
	if err == nil {
		err = errors.Join(f(file), file.Close())
	}
	if err == nil {
		return nil
	}
	var at *os.PathError
	if errors.As(err, &at) {
		err = at.Err // the name of the temporary file is irrelevant; its folder may be full
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("the value %s in %s: %w", what, filepath.Dir(path), err)
}
