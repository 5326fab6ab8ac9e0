//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// newBuilder returns a function that runs the builder of images in a directory, and returns what the builder prints.
func newBuilder(t *testing.T, dir string) func(args ...string) string {
	t.Helper()
	storage := t.TempDir()
	builder := func(ctx context.Context, args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, "buildah", append([]string{"--root", filepath.Join(storage, "root"), "--runroot", filepath.Join(storage, "run"), "--storage-driver", "vfs"}, args...)...)
		cmd.Dir = dir
		var complaint bytes.Buffer
		cmd.Stderr = &complaint
		out, err := cmd.Output()
		if err != nil {
			out = append(out, complaint.Bytes()...)
		}
		return out, missing("buildah", "buildah", err)
	}
	t.Cleanup(func() { // files of other users in the storage, which the test could not remove
		for _, what := range []string{"rm", "rmi"} {
			if out, err := builder(context.Background(), what, "--all"); err != nil {
				t.Errorf("buildah %s: %v\n%s", what, err, out)
			}
		}
	})
	return func(args ...string) string {
		t.Helper()
		out, err := builder(t.Context(), args...)
		if err != nil {
			t.Fatalf("buildah %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
}

// The image is built by a real builder, which is not root where the test is not, and fetches nothing. The program runs in it as
// the only thing in its root.
func testContainer(t *testing.T, r *release, files map[string][]byte) {
	base := t.TempDir()
	unpack(t, files["base.tar.gz"], base)
	if info, err := os.Stat(filepath.Join(base, "tmp")); err != nil || info.Mode() != fs.ModeDir|fs.ModeSticky|0o777 {
		t.Errorf("/tmp is %v, %v", info, err)
	}
	do := newBuilder(t, r.out)
	do("build", "--isolation", "chroot", "--pull-never", "--tag", "belay", ".")
	do("from", "--pull-never", "--name", "try", "belay")
	if out := do("run", "--isolation", "chroot", "try", "--", "belay", "version"); !strings.HasPrefix(out, "belay v1.2.3-rc.1 ") {
		t.Errorf("the program alone in its root says %q", out)
	}
	var image struct {
		OCI struct {
			Config struct {
				User       string   `json:"User"`       //nolint:tagliatelle // the standard's name
				WorkingDir string   `json:"WorkingDir"` //nolint:tagliatelle // likewise
				Entrypoint []string `json:"Entrypoint"` //nolint:tagliatelle // likewise
				Cmd        []string `json:"Cmd"`        //nolint:tagliatelle // likewise
			} `json:"config"`
		} `json:"OCIv1"` //nolint:tagliatelle // likewise
	}
	if err := json.Unmarshal([]byte(do("inspect", "--type", "image", "belay")), &image); err != nil {
		t.Fatal(err)
	}
	c := image.OCI.Config
	if c.User != "65532:65532" || c.WorkingDir != "/work" || !slices.Equal(slices.Concat(c.Entrypoint, c.Cmd), []string{"belay", "version"}) {
		t.Errorf("the image is %+v", c)
	}
	if first := strings.Index("\n"+string(files["Containerfile"]), "\nFROM scratch\n"); first < 0 {
		t.Error("the image is not from scratch")
	}
}

// An image has the program for its processor: that of this machine, or the one that --platform names.
//
// SPEC Q-01
func TestContainerPlatforms(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the packages are tried on Linux")
	}
	r := newRelease(t, "v0.1.0")
	file, err := r.fill("Containerfile", containerTemplate, nil)
	if err != nil {
		t.Fatal(err)
	}
	base, err := r.containerBase()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"Containerfile": file, "base.tar.gz": base}
	for _, arch := range []string{"amd64", "arm64"} {
		p := platform{"linux", arch}
		if files[r.archiveFile(p)], err = r.archive(program{p, []byte(arch)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	do := newBuilder(t, dir)
	for _, test := range []struct {
		arch  string
		flags []string
	}{{runtime.GOARCH, nil}, {"amd64", []string{"--platform", "linux/amd64"}}, {"arm64", []string{"--platform", "linux/arm64"}}} {
		do(slices.Concat([]string{"build", "--isolation", "chroot", "--pull-never", "--tag", "belay"}, test.flags, []string{"."})...)
		want := test.arch + " [PATH=/opt/" + r.archiveName(platform{"linux", test.arch}) + " HOME=/work]"
		if got := strings.TrimSpace(do("inspect", "--type", "image", "--format", "{{.OCIv1.Architecture}} {{.OCIv1.Config.Env}}", "belay")); got != want {
			t.Errorf("with %q the image is %q, want %q", test.flags, got, want)
		}
	}
}
