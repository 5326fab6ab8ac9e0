package cli

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/proc"
)

// clipboard reads images from the clipboard. Terminals paste text only, so it runs the programs
// that desktops have for this.
type clipboard struct {
	system string                   // a GOOS
	getenv func(name string) string // the environment
	limit  time.Duration            // for each program
}

func newClipboard(getenv func(name string) string) *clipboard {
	return &clipboard{runtime.GOOS, getenv, 5 * time.Second}
}

// clipboardReader is a program that can read the clipboard. read returns nothing if there is no
// image. It gets a function that runs the program.
type clipboardReader struct {
	program, install string
	read             func(run func(args ...string) []byte) []byte
}

// imageTypes are the types that models take, the best first. Other types, such as BMP, count as
// no image: another program may have the same image as PNG.
var imageTypes = []string{"image/png", "image/jpeg", "image/webp", "image/gif"}

// readers returns the programs to try, in this order.
func (c *clipboard) readers() []clipboardReader {
	powershell := clipboardReader{"powershell.exe", "powershell.exe", readPowershell}
	switch c.system {
	case "darwin":
		return []clipboardReader{
			{"pngpaste", "pngpaste", func(run func(...string) []byte) []byte { return run("-") }},
			{"osascript", "osascript", readOsascript},
		}
	case "windows":
		return []clipboardReader{powershell}
	}
	var all []clipboardReader
	if c.getenv("WAYLAND_DISPLAY") != "" {
		all = append(all, clipboardReader{"wl-paste", "wl-paste (package wl-clipboard)", func(run func(...string) []byte) []byte {
			return readTyped(run("--list-types"), func(mime string) []byte { return run("--no-newline", "--type", mime) })
		}})
	}
	if c.getenv("DISPLAY") != "" {
		all = append(all, clipboardReader{"xclip", "xclip", func(run func(...string) []byte) []byte {
			return readTyped(run("-selection", "clipboard", "-t", "TARGETS", "-o"), func(mime string) []byte { return run("-selection", "clipboard", "-t", mime, "-o") })
		}})
	}
	if c.getenv("WSL_DISTRO_NAME") != "" { // Windows passes images to Linux as BMP only, or not at all
		all = append(all, powershell)
	}
	return all
}

// readTyped reads the best type of those that a clipboard offers, one in each line.
func readTyped(offered []byte, read func(mime string) []byte) []byte {
	types := strings.Fields(string(offered))
	for _, mime := range imageTypes {
		if slices.Contains(types, mime) {
			return read(mime)
		}
	}
	return nil
}

// readOsascript reads an image that AppleScript prints as «data PNGf…», in hexadecimal digits.
func readOsascript(run func(args ...string) []byte) []byte {
	_, digits, _ := strings.Cut(string(run("-e", "get the clipboard as «class PNGf»")), "PNGf")
	digits, _, _ = strings.Cut(digits, "»")
	data, err := hex.DecodeString(strings.TrimSpace(digits))
	if err != nil {
		return nil
	}
	return data
}

// powershellScript prints the image of the clipboard as PNG, in base64.
const powershellScript = `Add-Type -AssemblyName System.Windows.Forms, System.Drawing
$image = [System.Windows.Forms.Clipboard]::GetImage()
if ($image) {
	$png = New-Object System.IO.MemoryStream
	$image.Save($png, [System.Drawing.Imaging.ImageFormat]::Png)
	[Convert]::ToBase64String($png.ToArray())
}`

func readPowershell(run func(args ...string) []byte) []byte {
	data, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(run("-NoProfile", "-NonInteractive", "-STA", "-Command", powershellScript))))
	if err != nil {
		return nil
	}
	return data
}

// image returns the image in the clipboard. Each error says what the user can do.
func (c *clipboard) image(ctx context.Context) (belay.Part, error) {
	readers := c.readers()
	if len(readers) == 0 {
		return belay.Part{}, errors.New("this machine has no clipboard: neither WAYLAND_DISPLAY nor DISPLAY is set (over SSH, the clipboard is on the other machine). Save the image to a file, and type its path")
	}
	var missing []string
	var slow error
	for _, r := range readers {
		path := c.find(r.program)
		if path == "" {
			missing = append(missing, r.install)
			continue
		}
		data, err := c.readWith(ctx, path, &r)
		var tooMuch *proc.TooMuchError
		switch {
		case errors.As(err, &tooMuch) || len(data) > mostImageBytes:
			return belay.Part{}, fmt.Errorf("the image in the clipboard is larger than %d MB: save it as a smaller file, and type its path", mostImageBytes>>20)
		case err != nil:
			slow = err
		case slices.Contains(imageTypes, http.DetectContentType(data)):
			part := belay.Image(http.DetectContentType(data), data)
			part.Media.Name = "clipboard" + strings.Replace(part.Media.MIME, "image/", ".", 1)
			return part, nil
		}
	}
	switch {
	case slow != nil:
		return belay.Part{}, slow
	case len(missing) == len(readers):
		return belay.Part{}, fmt.Errorf("no program reads images from the clipboard: install %s, or save the image to a file and type its path", strings.Join(missing, " or "))
	default:
		return belay.Part{}, errors.New("there is no image in the clipboard. Text comes with the paste key of your terminal, often ctrl+shift+v")
	}
}

// readWith reads the image with one program. It returns an error if the program takes too long or
// prints too much. A program that fails has no image: that is how most of them say it.
func (c *clipboard) readWith(ctx context.Context, path string, r *clipboardReader) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.limit, fmt.Errorf("%s did not answer within %s: try again, or save the image to a file and type its path", r.program, c.limit))
	defer cancel()
	var failed error
	data := r.read(func(args ...string) []byte {
		out := proc.NewCap(3 * mostImageBytes) // two digits a byte, and words around them
		exit, err := proc.Run(ctx, &proc.Command{Argv: append([]string{path}, args...), Env: c.environ(), Stdout: out, Grace: time.Millisecond, Whole: true})
		failed = errors.Join(failed, exit.Stopped)
		if err != nil || exit.Code != 0 {
			return nil
		}
		return bytes.Clone(out.Bytes())
	})
	return data, failed
}

// environ returns what the programs need of the environment: no keys of model providers.
func (c *clipboard) environ() []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "LANG", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "WSL_DISTRO_NAME", "WSL_INTEROP", "SystemRoot", "TEMP", "USERPROFILE"} {
		if value := c.getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// find returns the path of a program, or "". Relative directories of PATH do not count: the
// project could have a program of that name.
func (c *clipboard) find(program string) string {
	for _, dir := range filepath.SplitList(c.getenv("PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return path
		}
	}
	return ""
}
