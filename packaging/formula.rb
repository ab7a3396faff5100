class Mcompress < Formula
  desc "Compresses ONNX models by quantization, pruning and sparse storage"
  homepage "https://{{.Module}}"
  version "{{.Version}}"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "https://{{.Module}}/releases/download/v{{.Version}}/mcompress_{{.Version}}_darwin_arm64.tar.gz"
      sha256 "{{.Sums.macosARM}}"
    end
    on_intel do
      url "https://{{.Module}}/releases/download/v{{.Version}}/mcompress_{{.Version}}_darwin_amd64.tar.gz"
      sha256 "{{.Sums.macosIntel}}"
    end
  end

  on_linux do
    on_arm do
      url "https://{{.Module}}/releases/download/v{{.Version}}/mcompress_{{.Version}}_linux_arm64_glibc.tar.gz"
      sha256 "{{.Sums.linuxARM}}"
    end
    on_intel do
      url "https://{{.Module}}/releases/download/v{{.Version}}/mcompress_{{.Version}}_linux_amd64_glibc.tar.gz"
      sha256 "{{.Sums.linuxIntel}}"
    end
  end

  def install
    bin.install "mcompress"
    man1.install "man/man1/mcompress.1"
    bash_completion.install "completions/mcompress.bash" => "mcompress"
    zsh_completion.install "completions/_mcompress"
    fish_completion.install "completions/mcompress.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/mcompress version")
  end
end
