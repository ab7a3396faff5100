package avx512

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A binary is the tests of a package of this repository, those whose names match a pattern.
type binary struct{ folder, pattern string }

// The emulator is about a hundred times slower than the CPU on which it runs, hence a selection.
var binaries = []binary{
	{"internal/kernel", "Sparse|Int8|Gemm|Gemv|Quantized|Pair|Quads"},
	{"internal/engine/gemm", "."},
	{"internal/engine/spmm", "."},
	{"internal/engine/quant", "Sparse|MatMulNBits|QGemm"},
}

// TestKernels runs the tests in Bochs.
func TestKernels(t *testing.T) {
	if os.Getenv("MCOMPRESS_AVX512") == "" {
		t.Skip("make test-avx512 runs it")
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	disk := filepath.Join(folder, "disk")
	if err := os.Mkdir(disk, 0o755); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"initrd":       rootFolder(t, root, folder),
		"vmlinuz":      read(t, filepath.Join(root, ".avx512/vmlinuz")),
		"isolinux.bin": read(t, "/usr/lib/ISOLINUX/isolinux.bin"),
		"ldlinux.c32":  read(t, "/usr/lib/syslinux/modules/bios/ldlinux.c32"),
		"isolinux.cfg": "default vmlinuz initrd=initrd console=ttyS0 panic=-1 mitigations=off " +
			strings.Join(withoutFeatures, " "),
		"../bochsrc":  configuration,
		"../commands": "continue\n",
	}
	for name, content := range files {
		write(t, filepath.Join(disk, name), content)
	}
	run(t, folder, "xorriso", "-as", "mkisofs", "-quiet", "-o", "boot.iso", "-b", "isolinux.bin", "-c", "boot.cat",
		"-no-emul-boot", "-boot-load-size", "4", "-boot-info-table", "disk")
	emulate(t, folder)
}

// withoutFeatures are parameters of Debian's kernel for Bochs 2.7, whose CPUID states sizes of the registers of a
// thread that are wrong for compact forms and for protection keys, so that the kernel would disable AVX; without the
// other ones it does not boot. They were not tried one by one.
var withoutFeatures = []string{"nokaslr", "nopti", "nopcid", "noinvpcid", "nosmap", "nosmep",
	"clearcpuid=pku,xsavec,xsaves,umip,erms,fsrm"}

// configuration is that of Bochs: the screen is not shown, the console is the first serial port, which is a file.
const configuration = `config_interface: textconfig
display_library: rfb, options="timeout=0"
cpu: model=corei7_icelake_u, count=1, ips=50000000
megs: 1024
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/vgabios/vgabios.bin
ata0-master: type=cdrom, path=boot.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=console
log: log
error: action=ignore
panic: action=fatal
`

// rootFolder is a cpio archive of the root folder of the emulated computer.
func rootFolder(t *testing.T, root, folder string) string {
	t.Helper()
	var a archive
	a.add("dev", 0o40755, "")
	a.add("dev/console", 0o20600, "")
	build(t, root, folder, "build", "-ldflags=-s -w", "-o", filepath.Join(folder, "init"),
		"./internal/dev/avx512/guest")
	a.add("init", 0o100755, read(t, filepath.Join(folder, "init")))
	var tests strings.Builder
	for _, b := range binaries {
		name := strings.ReplaceAll(b.folder, "/", "-")
		build(t, root, folder, "test", "-c", "-vet=off", "-ldflags=-s -w", "-o", filepath.Join(folder, name),
			"./"+b.folder)
		a.add(name, 0o100755, read(t, filepath.Join(folder, name)))
		fmt.Fprintf(&tests, "%s -test.short -test.v -test.timeout=0 -test.run %s\n", name, b.pattern)
	}
	a.add("tests", 0o100644, tests.String())
	return a.closed()
}

// build runs the go command in the root folder of the repository, for programs that need no libraries.
func build(t *testing.T, root, folder string, args ...string) {
	t.Helper()
	t.Setenv("CGO_ENABLED", "0")
	t.Setenv("GOOS", "linux")
	t.Setenv("GOARCH", "amd64")
	run(t, root, "go", args...)
}

// emulate runs the computer until it switches itself off.
func emulate(t *testing.T, folder string) {
	t.Helper()
	ctx := t.Context()
	if deadline, ok := t.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-time.Minute))
		defer cancel()
	}
	// Bochs fails when the computer switches itself off, like on all errors: the console shows which it was.
	bochs := exec.CommandContext(ctx, "bochs", "-f", "bochsrc", "-rc", "commands")
	bochs.Dir = folder
	output, err := bochs.CombinedOutput()
	console, missing := os.ReadFile(filepath.Join(folder, "console"))
	if missing != nil {
		t.Fatalf("%v, %v\n%s", missing, err, output)
	}
	for line := range strings.Lines(string(console)) {
		if strings.HasPrefix(line, "guest: ") || strings.HasPrefix(line, "--- ") {
			t.Log(strings.TrimSpace(line))
		}
	}
	if !strings.Contains(string(console), "guest: all tests passed with AVX-512 and VNNI") {
		t.Errorf("%v\n%s", err, console)
	}
}

func run(t *testing.T, folder, name string, args ...string) {
	t.Helper()
	command := exec.Command(name, args...)
	command.Dir = folder
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, output)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
