package engine

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"sync"
	"unsafe"
)

// A storedCodec writes and reads Go values that consist of numbers, and of slices, pointers and structs of them: the
// states of operators and packed constants. Slices of numbers are payloads, which reading does not copy; all others are
// a sequence of integers. The order of both follows from the type, so that the type must be known.
type storedCodec struct {
	decoding bool
	numbers  []int64
	payloads *payloads
}

// errUnstorable means that a value has text, functions or interfaces.
var errUnstorable = errors.New("the value cannot be stored")

// encodeStored is the numbers of the value that p references, whose payloads are added to all.
func encodeStored(p any, all *payloads) ([]int64, error) {
	c := &storedCodec{payloads: all}
	err := c.walk(reflect.ValueOf(p).Elem())
	return c.numbers, err
}

// decodeStored sets the value that p references.
func decodeStored(p reflect.Value, numbers []int64, all *payloads) error {
	c := &storedCodec{decoding: true, numbers: numbers, payloads: all}
	return c.walk(p.Elem())
}

// number writes n, or returns the next number.
func (c *storedCodec) number(n int64) int64 {
	if c.decoding {
		n, c.numbers = c.numbers[0], c.numbers[1:]
		return n
	}
	c.numbers = append(c.numbers, n)
	return n
}

// walk writes v, or sets it.
func (c *storedCodec) walk(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Bool:
		if n := c.number(count(v.Bool())); c.decoding {
			v.SetBool(n != 0)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if n := c.number(v.Int()); c.decoding {
			v.SetInt(n)
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if n := c.number(int64(v.Uint())); c.decoding {
			v.SetUint(uint64(n))
		}
	case reflect.Float32, reflect.Float64:
		if n := c.number(int64(math.Float64bits(v.Float()))); c.decoding {
			v.SetFloat(math.Float64frombits(uint64(n)))
		}
	case reflect.Pointer:
		n := c.number(count(!v.IsNil()))
		if n == 0 {
			return nil
		}
		if c.decoding {
			v.Set(reflect.New(v.Type().Elem()))
		}
		return c.walk(v.Elem())
	case reflect.Struct:
		return c.fields(v)
	case reflect.Array:
		return c.elements(v)
	case reflect.Slice:
		return c.slice(v)
	default:
		return fmt.Errorf("%w: it has a %s", errUnstorable, v.Type())
	}
	return nil
}

// count is 1 for true.
func count(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// fields walks the fields of a struct, also those that are not exported. Locks are not part of the value.
func (c *storedCodec) fields(v reflect.Value) error {
	for i := range v.NumField() {
		f := v.Field(i)
		if f.Type() == reflect.TypeFor[sync.Mutex]() {
			continue
		}
		if err := c.walk(reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem()); err != nil {
			return err
		}
	}
	return nil
}

func (c *storedCodec) elements(v reflect.Value) error {
	for i := range v.Len() {
		if err := c.walk(v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

// slice walks a slice; the length of nil is -1.
func (c *storedCodec) slice(v reflect.Value) error {
	n := int64(v.Len())
	if v.IsNil() {
		n = -1
	}
	if n = c.number(n); n < 0 {
		return nil
	}
	element := v.Type().Elem()
	switch kind := element.Kind(); {
	case n > 0 && kind > reflect.Bool && kind <= reflect.Float64:
		size := int64(element.Size())
		if !c.decoding {
			c.number(int64(c.payloads.add(unsafe.Slice((*byte)(v.UnsafePointer()), n*size))))
			return nil
		}
		data, err := c.payloads.get(int(c.number(0)), n*size)
		if err != nil {
			return err
		}
		// Payloads are at multiples of storedAlign, which is enough for every type of number.
		v.Set(reflect.SliceAt(element, unsafe.Pointer(&data[0]), int(n)).Convert(v.Type()))
		return nil
	case c.decoding:
		v.Set(reflect.MakeSlice(v.Type(), int(n), int(n)))
	}
	return c.elements(v)
}
