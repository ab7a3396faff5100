package train

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

func TestOffloadRestore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "values")
	a, b := values[float32](1, 3, 5), labels(9, 7)
	places := [2][]*ir.Attr{{ir.StringAttr("path", path)}, {ir.StringAttr("path", path), ir.IntAttr("offset", 60)}}
	for range 2 {
		for i, x := range []*ir.Array{a, b} {
			results(t, "Offload", 1, []*ir.Array{x}, places[i]...)
		}
		for i, x := range []*ir.Array{a, b} {
			attrs := append(places[i], ir.IntAttr("dtype", int64(x.DType)), ir.IntsAttr("shape", x.Shape...))
			same(t, "restored", results(t, "Restore", 1, []*ir.Array{quantizedValues(1)}, attrs...)[:1], []*ir.Array{x})
		}
		a, b = b, a
		a.DType, a.Shape, b.DType, b.Shape = ir.Float, []int64{14}, ir.Int32, []int64{15}
	}
}

func TestOffloadErrors(t *testing.T) {
	folder := t.TempDir()
	short, path := filepath.Join(folder, "short"), ir.StringAttr("path", filepath.Join(folder, "short"))
	if err := os.WriteFile(short, make([]byte, 7), 0o600); err != nil {
		t.Fatal(err)
	}
	token, x := quantizedValues(1), values[float32](1, 2)
	typ, shape := ir.IntAttr("dtype", int64(ir.Float)), ir.IntsAttr("shape", 2)
	for _, c := range []struct {
		op, want string
		in       *ir.Array
		attrs    []*ir.Attr
	}{
		{"Offload", "attribute path is missing", x, nil},
		{"Offload", "is written away in " + filepath.Join(folder, "none"), x,
			[]*ir.Attr{ir.StringAttr("path", filepath.Join(folder, "none", "x"))}},
		{"Offload", "not a tensor of numbers", ir.TextOf([]string{"a"}, 1), []*ir.Attr{path}},
		{"Restore", "is read back in " + folder + ": unexpected EOF", token, []*ir.Attr{path, typ, shape}},
		{"Restore", "attribute dtype is 0", token, []*ir.Attr{path, shape}},
		{"Restore", "attribute dtype is 257", token, []*ir.Attr{path, shape, ir.IntAttr("dtype", 257)}},
		{"Restore", "attribute offset is -1", token, []*ir.Attr{path, typ, shape, ir.IntAttr("offset", -1)}},
	} {
		_, err := optest.Run(Ops(), optest.Case{Domain: domain, Type: c.op, Version: 1, In: []*ir.Array{c.in},
			Attrs: c.attrs})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one with %q", c.op, err, c.want)
		}
	}
	full := optest.Case{Domain: domain, Type: "Offload", Version: 1, In: []*ir.Array{x},
		Attrs: []*ir.Attr{ir.StringAttr("path", "/dev/full")}}
	if _, err := os.Stat("/dev/full"); err != nil {
		return
	}
	if _, err := optest.Run(Ops(), full); err == nil || !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("error of a full disk: %v", err)
	}
}
