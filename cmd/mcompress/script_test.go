package main

import (
	"bytes"
	"encoding/binary"
	"flag"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/mcompress/mcompress"
	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write what the tests compare with anew")

func TestMain(m *testing.M) {
	// bench, memory and split run their own program: without this, a test that calls it would run the tests again,
	// without end.
	if len(os.Args) > 1 && (strings.HasPrefix(os.Args[1], mcompress.MeasureCommand) || os.Args[1] == mcompress.StageCommand) {
		main()
		return
	}
	testscript.Main(rarelyCollected{m}, map[string]func(){"mcompress": func() {
		if size, err := strconv.Atoi(os.Getenv(stackSize)); err == nil {
			debug.SetMaxStack(size)
		}
		// With its tests the program has about the memory above which plans of training have the measured size of the process instead of that of the
		// program, and would have now the one, now the other.
		heavier := bytes.Repeat([]byte{1}, 2<<20)
		main()
		runtime.KeepAlive(heavier)
	}})
}

// rarelyCollected are the tests, which run hundreds of commands in one process: their heaps of a few MiB would be collected all the time. The program
// runs as for users.
type rarelyCollected struct{ *testing.M }

func (m rarelyCollected) Run() int {
	debug.SetGCPercent(400)
	return m.M.Run()
}

// stackSize is an environment variable: the maximum size of stacks of the program in bytes.
const stackSize = "MCOMPRESS_TEST_STACK"

// writeIDX writes an IDX file of bytes, the element i being i modulo N: idx FILE N SIZE...
func writeIDX(ts *testscript.TestScript, _ bool, args []string) {
	modulo, err := strconv.Atoi(args[1])
	ts.Check(err)
	data := []byte{0, 0, 8, byte(len(args) - 2)}
	elems := 1
	for _, arg := range args[2:] {
		size, err := strconv.Atoi(arg)
		ts.Check(err)
		data = binary.BigEndian.AppendUint32(data, uint32(size))
		elems *= size
	}
	for i := range elems {
		data = append(data, byte(i%modulo))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), data, 0o644))
}

// params gives scripts the fixtures: $FIXTURES, and "fixture NAME..." that copies some.
func params(t *testing.T) testscript.Params {
	fixtures, err := filepath.Abs("../../fixtures")
	if err != nil {
		t.Fatal(err)
	}
	return testscript.Params{
		RequireExplicitExec: false,
		Setup: func(e *testscript.Env) error {
			e.Setenv("FIXTURES", fixtures)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"fixture": func(ts *testscript.TestScript, _ bool, names []string) {
				for _, name := range names {
					data, err := os.ReadFile(filepath.Join(fixtures, name))
					ts.Check(err)
					ts.Check(os.WriteFile(ts.MkAbs(name), data, 0o644))
				}
			},
			"exits":    exits,
			"idx":      writeIDX,
			"registry": startRegistry,
		},
	}
}

// startRegistry starts an OCI registry in this process, whose host and port is $REGISTRY, also in the named files:
// registry FILE...
func startRegistry(ts *testscript.TestScript, _ bool, files []string) {
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true),
		registry.Logger(log.New(io.Discard, "", 0))))
	ts.Defer(server.Close)
	ts.Setenv("REGISTRY", strings.TrimPrefix(server.URL, "http://"))
	ts.Setenv("DOCKER_CONFIG", ts.Getenv("WORK"))
	for _, name := range files {
		text := strings.ReplaceAll(ts.ReadFile(name), "$REGISTRY", ts.Getenv("REGISTRY"))
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o644))
	}
}

// exits runs mcompress and requires the given exit code: exits CODE ARGUMENTS...
func exits(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec("mcompress", args[1:]...)
	code := "0"
	if err != nil {
		code = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if code != args[0] {
		ts.Fatalf("exit code %s, want %s", code, args[0])
	}
}

func TestScripts(t *testing.T) {
	p := params(t)
	p.Dir = "testdata/script"
	p.UpdateScripts = *update
	testscript.Run(t, p)
}
