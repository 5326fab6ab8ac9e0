package assembly

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// heldSuffix is the suffix of files that settle renames.
const heldSuffix = ".held-by-belay"

// repository detects files that make git read its settings from another directory. Such
// settings can name programs that git runs. A sandbox cannot prevent these files without
// breaking git.
type repository struct {
	project   string
	links     []string // directories that the git index lists as repositories
	elsewhere bool     // .git/commondir exists, as in a worktree
}

// seeRepository records the state of the project's repository before a command runs.
func seeRepository(project string) *repository {
	r := &repository{project: project, links: gitlinks(filepath.Join(project, ".git", "index"))}
	_, err := os.Lstat(filepath.Join(project, ".git", "commondir"))
	r.elsewhere = err == nil
	return r
}

// steering returns the settings files of the repositories inside the project.
func (r *repository) steering() []string {
	var paths []string
	for _, link := range r.links {
		dir := filepath.Join(r.project, filepath.FromSlash(link), ".git")
		if info, err := os.Lstat(dir); err == nil && info.IsDir() && len(paths) < mostModules {
			paths = append(paths, steeringGit(dir)...)
		}
	}
	return paths
}

// settle renames the dangerous files that a command has created. It returns a message about
// them, or "".
func (r *repository) settle() string {
	var held []string
	hold := func(path string) {
		to := path + heldSuffix
		for n := 2; ; n++ {
			if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
				break
			}
			to = fmt.Sprintf("%s%s-%d", path, heldSuffix, n)
		}
		name, err := filepath.Rel(r.project, path)
		if err != nil {
			name = path
		}
		if err := os.Rename(path, to); err != nil {
			held = append(held, fmt.Sprintf("%s, which could not be moved away (%v): remove it before you use git", name, err))
			return
		}
		held = append(held, name)
	}
	if other := filepath.Join(r.project, ".git", "commondir"); !r.elsewhere {
		if _, err := os.Lstat(other); err == nil {
			hold(other)
		}
	}
	for _, link := range gitlinks(filepath.Join(r.project, ".git", "index")) {
		if slices.Contains(r.links, link) || !filepath.IsLocal(filepath.FromSlash(link)) {
			continue
		}
		if dir := filepath.Join(r.project, filepath.FromSlash(link), ".git"); exists(dir) {
			hold(dir)
		}
	}
	if len(held) == 0 {
		return ""
	}
	return fmt.Sprintf("the command left files that make git read its settings, and programs to run, from another place. Belay renamed them: %s now ends in %s. Tell the user", strings.Join(held, ", "), heldSuffix)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// gitlinks returns the paths that a git index lists as repositories. It returns none if it
// cannot read the index, because then git cannot read it either.
func gitlinks(index string) []string {
	data, err := os.ReadFile(index)
	if err != nil || len(data) < 12 || string(data[:4]) != "DIRC" {
		return nil
	}
	version, count := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version < 2 || version > 4 {
		return nil
	}
	var links []string
	rest, path := data[12:], ""
	for range count {
		const fixed, extended = 62, 0x4000 // the size of an entry without its name, and the flag for two more bytes
		if len(rest) < fixed {
			return links
		}
		mode, flags := binary.BigEndian.Uint32(rest[24:]), binary.BigEndian.Uint16(rest[60:])
		size := fixed
		if flags&extended != 0 {
			size += 2
		}
		if len(rest) < size {
			return links
		}
		name, taken := indexName(rest[size:], path, version)
		if taken < 0 {
			return links
		}
		path = name
		if size += taken; version < 4 {
			size = (size + 7) / 8 * 8 // entries are padded to a multiple of 8 bytes
		}
		if mode == 0o160000 {
			links = append(links, path)
		}
		if len(rest) < size {
			return links
		}
		rest = rest[size:]
	}
	return links
}

// indexName reads the name of an index entry. It returns the name and the number of bytes
// read, or -1 for invalid data. In version 4 a name is the previous name with another end.
func indexName(data []byte, before string, version uint32) (string, int) {
	taken := 0
	if version == 4 {
		strip, n := 0, 0
		for {
			if n == len(data) || n > 8 {
				return "", -1
			}
			b := data[n]
			n++
			strip = strip<<7 | int(b&0x7f)
			if b&0x80 == 0 {
				break
			}
			strip++
		}
		if strip > len(before) {
			return "", -1
		}
		before, taken = before[:len(before)-strip], n
	} else {
		before = ""
	}
	end := bytes.IndexByte(data[taken:], 0)
	if end < 0 {
		return "", -1
	}
	return before + string(data[taken:taken+end]), taken + end + 1
}
