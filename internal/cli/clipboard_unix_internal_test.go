//go:build unix

package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/internal/filetest"
)

// ctrl+v reads the image in the clipboard with the programs of the desktop, and says what to do
// if it cannot. A program that hangs does not hold up the chat.
//
// SPEC U-02
func TestClipboardImage(t *testing.T) {
	t.Parallel()
	const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	data, err := base64.StdEncoding.DecodeString(png)
	if err != nil {
		t.Fatal(err)
	}
	const (
		offersPNG = `case "$*" in *list-types*|*TARGETS*) echo text/plain; echo image/bmp; echo image/png;; *image/png*) cat "$(dirname "$0")/image";; *) exit 1;; esac`
		offersBMP = `case "$*" in *list-types*|*TARGETS*) echo image/bmp;; *) printf BM;; esac`
		isEmpty   = `echo "nothing is copied" >&2; exit 1`
		hangs     = `exec sleep 600`
		isBase64  = `echo ` + png
		isHex     = `printf '«data PNGf%s»\n' ` // and the digits
	)
	for _, test := range []struct {
		rule, system string
		environ      []string
		programs     map[string]string
		wrong        string // the beginning of the error; "" stands for the image
	}{
		{"Wayland", "linux", []string{"WAYLAND_DISPLAY=w"}, map[string]string{"wl-paste": offersPNG}, ""},
		{"X11", "linux", []string{"DISPLAY=:0"}, map[string]string{"xclip": offersPNG}, ""},
		{"only one of two is installed", "linux", []string{"WAYLAND_DISPLAY=w", "DISPLAY=:0"}, map[string]string{"xclip": offersPNG}, ""},
		{"the second has the image", "linux", []string{"WAYLAND_DISPLAY=w", "DISPLAY=:0"}, map[string]string{"wl-paste": isEmpty, "xclip": offersPNG}, ""},
		{"WSL passes BMP on to Linux, and PowerShell has PNG", "linux", []string{"WAYLAND_DISPLAY=w", "WSL_DISTRO_NAME=u"}, map[string]string{"wl-paste": offersBMP, "powershell.exe": isBase64}, ""},
		{"the first hangs, and the second has the image", "linux", []string{"WAYLAND_DISPLAY=w", "DISPLAY=:0"}, map[string]string{"wl-paste": hangs, "xclip": offersPNG}, ""},
		{"a Mac with pngpaste", "darwin", nil, map[string]string{"pngpaste": `cat "$(dirname "$0")/image"`}, ""},
		{"a Mac without it", "darwin", nil, map[string]string{"osascript": isHex + hex.EncodeToString(data)}, ""},
		{"Windows", "windows", nil, map[string]string{"powershell.exe": isBase64}, ""},
		{"text in the clipboard", "linux", []string{"DISPLAY=:0"}, map[string]string{"xclip": `echo UTF8_STRING`}, "there is no image in the clipboard"},
		{"only BMP", "linux", []string{"WAYLAND_DISPLAY=w"}, map[string]string{"wl-paste": offersBMP}, "there is no image in the clipboard"},
		{"words instead of an image", "darwin", nil, map[string]string{"pngpaste": "echo no", "osascript": "echo no"}, "there is no image in the clipboard"},
		{"nothing copied", "windows", nil, map[string]string{"powershell.exe": "true"}, "there is no image in the clipboard"},
		{"nothing installed", "linux", []string{"WAYLAND_DISPLAY=w", "DISPLAY=:0"}, nil, "no program reads images from the clipboard: install wl-paste (package wl-clipboard) or xclip"},
		{"over SSH", "linux", nil, map[string]string{"xclip": offersPNG}, "this machine has no clipboard"},
		{"a program that hangs", "linux", []string{"DISPLAY=:0"}, map[string]string{"xclip": hangs}, "xclip did not answer within"},
		{"a program that never ends to print", "linux", []string{"DISPLAY=:0"}, map[string]string{"xclip": `case "$*" in *TARGETS*) echo image/png;; *) yes;; esac`}, "the image in the clipboard is larger than 5 MB"},
		{"a large image", "darwin", nil, map[string]string{"pngpaste": `cat "$(dirname "$0")/image"; head -c 6000000 /dev/zero`}, "the image in the clipboard is larger than 5 MB"},
		{"a program that gets a key", "darwin", []string{"ANTHROPIC_API_KEY=secret"}, map[string]string{"pngpaste": `test -n "$ANTHROPIC_API_KEY" && cat "$(dirname "$0")/image"`}, "there is no image in the clipboard"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "image"), data, 0o600); err != nil {
				t.Fatal(err)
			}
			for name, script := range test.programs {
				filetest.WriteProgram(t, filepath.Join(dir, name), "#!/bin/sh\nPATH=/usr/bin:/bin\n"+script+"\n")
			}
			environ := slices.Concat(test.environ, []string{"PATH=.:" + dir})
			c := &clipboard{test.system, func(name string) string {
				for _, v := range environ {
					if value, ok := strings.CutPrefix(v, name+"="); ok {
						return value
					}
				}
				return ""
			}, 20 * time.Second}
			if strings.Contains(test.rule, "hangs") {
				c.limit = 300 * time.Millisecond
			}
			part, err := c.image(t.Context())
			switch {
			case test.wrong != "":
				if err == nil || !strings.HasPrefix(err.Error(), test.wrong) {
					t.Errorf("the error is %v, want %q", err, test.wrong)
				}
			case err != nil:
				t.Error(err)
			case part.Media.MIME != "image/png" || !bytes.Equal(part.Media.Data, data) || part.Media.Name != "clipboard.png":
				t.Errorf("the image is %s %s with %d bytes", part.Media.Name, part.Media.MIME, len(part.Media.Data))
			}
		})
	}
}
