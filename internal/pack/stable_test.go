package pack

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

var update = flag.Bool("update", false, "write the containers in testdata anew")

// stable are files of every kind of content, the same on every platform: floats of few exponents, sorted positions,
// small integers, halves of bytes, noise, text, repeated tensors and long zeros.
func stable(size int) []File {
	r := rand.New(rand.NewPCG(31, 32))
	bell := func(n int) (sum int) { // of a binomial distribution
		for range n {
			sum += r.IntN(3) - 1
		}
		return sum
	}
	var parts [][]byte
	var types []ir.DType
	add := func(t ir.DType, element func(i int, b []byte) []byte) {
		var b []byte
		for i := 0; len(b) < size; i++ {
			b = element(i, b)
		}
		parts, types = append(parts, b), append(types, t)
	}
	float := func(exponent uint32) uint32 {
		return r.Uint32()&(1<<31|1<<23-1) | (exponent-uint32(min(r.IntN(64), r.IntN(64))/8))<<23
	}
	add(ir.Float, func(_ int, b []byte) []byte { return binary.LittleEndian.AppendUint32(b, float(120)) })
	add(ir.BFloat16, func(_ int, b []byte) []byte { return binary.LittleEndian.AppendUint16(b, uint16(float(120)>>16)) })
	add(ir.Double, func(_ int, b []byte) []byte {
		return binary.LittleEndian.AppendUint64(b, uint64(float(120))<<32|r.Uint64()>>36)
	})
	add(ir.Int64, func(i int, b []byte) []byte { return binary.LittleEndian.AppendUint64(b, uint64(7*i+bell(4))) })
	add(ir.Int32, func(i int, b []byte) []byte { return binary.LittleEndian.AppendUint32(b, uint32(i-size/8+bell(40))) })
	add(ir.Int16, func(_ int, b []byte) []byte { return binary.LittleEndian.AppendUint16(b, uint16(bell(900))) })
	add(ir.Int8, func(_ int, b []byte) []byte { return append(b, byte(bell(400))) })
	add(ir.Uint8, func(_ int, b []byte) []byte { return append(b, byte(r.Uint32())) })
	add(ir.Int4, func(_ int, b []byte) []byte { return append(b, byte(bell(4)&15|bell(4)<<4)) })
	add(ir.Float16, func(i int, b []byte) []byte { return binary.LittleEndian.AppendUint16(b, uint16(i%3)<<10) })
	parts, types = append(parts, parts[0], make([]byte, size)), append(types, types[0], ir.Float)
	var files []File
	for i, name := range []string{"m.onnx", "data/m.bin"} {
		var b []byte
		var tensors []Tensor
		for j := i; j < len(parts); j += 2 {
			b = fmt.Appendf(b, "header of tensor %d, %d bytes", j, len(parts[j]))
			tensors = append(tensors,
				Tensor{ir.Spec{Name: fmt.Sprint("tensor ", j), DType: types[j],
					Shape: []int64{int64(len(parts[j])) * 8 / types[j].Bits()}}, int64(len(b))})
			b = append(b, parts[j]...)
		}
		for k := range 300 {
			b = fmt.Appendf(b, "node %d of %s takes values %d and %d; ", k, name, k*k%17, bell(9))
		}
		files = append(files, File{Name: name, Size: int64(len(b)), R: bytes.NewReader(b), Tensors: tensors})
	}
	return files
}

// tuned changes some elements of files a little, and sets others to zero.
func tuned(files []File) []File {
	for i, f := range files {
		b := make([]byte, f.Size)
		_, _ = f.R.ReadAt(b, 0)
		for at := 0; at+8 < len(b); at += 8 {
			switch at / 8 % 5 {
			case 0:
				b[at]++
			case 3:
				clear(b[at : at+8])
			}
		}
		files[i].R = bytes.NewReader(b)
	}
	return files
}

// A container that was written before is read: coders that learn from the content, such as mix, would restore other
// bytes after any change that both directions have in common. Equal files have equal containers: after a change of the
// coders that is meant, -update writes them anew, next to what the readers must keep.
func TestContainersAreStable(t *testing.T) {
	zeros := File{Name: "zeros", Size: smallSize + 1, R: bytes.NewReader(make([]byte, smallSize+1))}
	for name, c := range map[string]struct {
		files []File
		o     Options
	}{
		"small":      {files: stable(2 << 10)},
		"large":      {files: append(stable(16<<10), zeros)}, // zeros make it large
		"difference": {files: tuned(stable(5 << 10)), o: Options{Base: stable(5 << 10)}},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Workers = 2
			path := filepath.Join("testdata", name+".mcz")
			b, _ := packed(t, c.files, c.o)
			if *update {
				if err := os.WriteFile(path, b, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			outs := map[string]*output{}
			if _, err := Read(t.Context(), bytes.NewReader(before), path, func(f FileInfo) (Output, error) {
				outs[f.Name] = &output{}
				return outs[f.Name], nil
			}, c.o); err != nil {
				t.Fatal(err)
			}
			if !contains(t, outs, c.files) {
				t.Error("a container that was written before has other content now")
			}
			if !bytes.Equal(before, b) {
				t.Errorf("%d bytes, %d before: equal files have other containers", len(b), len(before))
			}
		})
	}
}
