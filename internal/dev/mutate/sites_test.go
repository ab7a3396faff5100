package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const source = `package p

func f(a, b int, err error) (int, error) {
	if !(a < b) && a == 3 {
		a++
	}
	for {
		continue
	}
	a = min(a, b)
	g()
	return a + b, err
}
`

// The mutants of a small file, by hand, as line, text and replacement.
func TestMutantsOfAFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	p := &pkg{Dir: dir, GoFiles: []string{"p.go"}}
	found, err := p.mutants(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"4 ! → ", "4 < → <=", "4 && → ||", "4 == → !=", "4 3 → 4", "5 ++ → --", "8 continue → break",
		"10 a = min(a, b) → ", "10 min → max", "11 g() → ",
		"12 + → -", "12 err → nil",
	}
	var got []string
	for _, m := range found {
		got = append(got, fmt.Sprintf("%d %s → %s", m.Line, m.Before, m.After))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("mutants\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	some, err := p.mutants(map[string]map[int]bool{relative(filepath.Join(dir, "p.go")): {11: true}})
	if err != nil || len(some) != 1 || some[0].Line != 11 {
		t.Errorf("mutants of line 11: %v, %v", some, err)
	}
}

// The order of mutants depends on the seed only, and the packages that are left out do not change it.
func TestOrderOfMutants(t *testing.T) {
	packages := map[string]*pkg{}
	for _, name := range []string{"a", "b", "c", "d"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name+".go"), []byte(source), 0o644); err != nil {
			t.Fatal(err)
		}
		packages[name] = &pkg{Dir: dir, GoFiles: []string{name + ".go"}}
	}
	order := func(seed uint64) (all, ofB []string) {
		found, err := sites(packages, nil, seed)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range found {
			if all = append(all, m.key()); filepath.Base(m.File) == "b.go" {
				ofB = append(ofB, m.key())
			}
		}
		return all, ofB
	}
	all, ofB := order(1)
	if other, _ := order(2); slices.Equal(all, other) {
		t.Error("seeds 1 and 2 have the same order")
	}
	for range 5 {
		if again, _ := order(1); !slices.Equal(all, again) {
			t.Fatal("the order changes from run to run")
		}
	}
	packages = map[string]*pkg{"b": packages["b"]}
	if alone, _ := order(1); !slices.Equal(alone, ofB) {
		t.Error("the order of the mutants of a package depends on other packages")
	}
}

// The lines of a hunk are those of its new side.
func TestLinesOfHunks(t *testing.T) {
	for text, want := range map[string][]int{"+3": {3}, "+3,2": {3, 4}, "+3,0": nil} {
		lines := map[int]bool{}
		addHunk(lines, text)
		var got []int
		for l := range lines {
			got = append(got, l)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: lines %v, want %v", text, got, want)
		}
	}
}
