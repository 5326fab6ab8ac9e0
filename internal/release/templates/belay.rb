class Belay < Formula
  desc "Agent runtime with typed hooks at every decision"
  homepage "https://github.com/belay-run/belay"
  version "@VERSION@"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "@FROM@/belay_@VERSION@_darwin_arm64.tar.gz"
      sha256 "@SHA256_DARWIN_ARM64@"
    end
    on_intel do
      url "@FROM@/belay_@VERSION@_darwin_amd64.tar.gz"
      sha256 "@SHA256_DARWIN_AMD64@"
    end
  end

  on_linux do
    on_arm do
      url "@FROM@/belay_@VERSION@_linux_arm64.tar.gz"
      sha256 "@SHA256_LINUX_ARM64@"
    end
    on_intel do
      url "@FROM@/belay_@VERSION@_linux_amd64.tar.gz"
      sha256 "@SHA256_LINUX_AMD64@"
    end
  end

  def install
    bin.install "belay"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/belay.bash" => "belay"
    zsh_completion.install "completions/_belay"
    fish_completion.install "completions/belay.fish"
  end

  test do
    assert_match "belay v@VERSION@", shell_output("#{bin}/belay version")
  end
end
