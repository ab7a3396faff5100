package untrusted

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// No name leaves the folder, on any operating system, hides a file, or shows another name than it has.
func TestHostileNames(t *testing.T) {
	for _, names := range [][]string{
		{""}, {"."}, {".."}, {"../x.onnx"}, {"a/../../x"}, {"a/../x"}, {"/etc/x"}, {"a//b"}, {"./x"}, {"a/."}, {"a/"},
		{`..\x`}, {`a\b`}, {"C:/x"}, {"C:x"}, {`\\host\x`}, {"x.onnx:stream"}, {"a*"}, {"a?"}, {`"a"`}, {"a|b"}, {"<a>"},
		{"NUL"}, {"con.onnx"}, {"a/COM1.txt"}, {"lpt¹"}, {"COM0"}, {"aux .onnx"}, {"conin$"}, {"x."}, {"x "}, {"a./b"},
		{".git/config"}, {".git/hooks/post-checkout"}, {"a/.ssh"}, {".bashrc"}, {"..."},
		{"x\x00y"}, {"x\ny"}, {"x\ty"}, {"x\x7f"}, {"x\u0085y"}, {"x\xff"}, {"x\ufffd"},
		{"m\u202exnno.exe"}, {"a\u2066b"}, {"a\u200bb"}, {"a\ufeffb"}, {"a\u00adb"}, {"a\u2028b"}, {"a\u00a0b"},
		{"a\ue000b"}, {"a\U000e0041b"}, {strings.Repeat("x", maxName+1)},
		{"x.onnx", "X.onnx"}, {"x.onnx", "x.onnx"}, {"ſ", "s"}, {"\u212a", "k"}, {"Ä", "ä"},
		{"a", "a/b"}, {"A/b", "a"}, {"a/b/c", "A/B"},
	} {
		var wrong *NameError
		if err := CheckNames(names); !errors.As(err, &wrong) || wrong.Name != names[0] && wrong.Name != names[len(names)-1] {
			t.Errorf("%q: got %v", names, err)
		}
	}
	for _, names := range [][]string{
		{}, {"a"}, {"model.onnx", "model.onnx.data", "onnx/model.onnx"}, {"a b.onnx"}, {"模型.onnx"}, {"modèle.onnx"},
		{"a/b", "a/c", "a/d/e"}, {"comment"}, {"con2"}, {"COM10"}, {"a..b"}, {"a.b.c"}, {"-delete"},
		{strings.Repeat("x", maxName)},
	} {
		if err := CheckNames(names); err != nil {
			t.Errorf("%q: got %v", names, err)
		}
	}
}

// Paths for reading stay in the folder, whatever the name is.
func TestPath(t *testing.T) {
	for name, want := range map[string]string{"a": "dir/a", "a/b.npz": "dir/a/b.npz", ".cache/x": "dir/.cache/x", "a/../b": "", ".": "dir"} {
		got, err := Path("dir", name)
		if filepath.ToSlash(got) != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
	for _, name := range []string{"", "..", "../x", "a/../../x", "/etc/passwd", "a\x00b", "a//b", "./a"} {
		var wrong *NameError
		if got, err := Path("dir", name); !errors.As(err, &wrong) {
			t.Errorf("%q: got %q, %v", name, got, err)
		}
	}
}

func TestSHA256(t *testing.T) {
	right := strings.Repeat("0123456789abcdef", 4)
	if err := CheckSHA256(right); err != nil {
		t.Error(err)
	}
	for _, text := range []string{
		"", "0", right[:63], right + "0", right + "00", strings.ToUpper(right), "/../../../../elsewhere/planted" + right[:34],
		right[:63] + "g", "sha256:" + right,
	} {
		if CheckSHA256(text) == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
