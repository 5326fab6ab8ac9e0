//go:build unix

package warmhook

import (
	"os"
	"syscall"
)

// Socket returns the path of the socket of the worker for a directory. The path also
// depends on the program file, so that a new version of Belay gets a new worker, and on the
// variables that say where settings are.
func Socket(dir string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	info, err := os.Stat(self)
	if err != nil {
		return "", err
	}
	hash := uint64(14695981039346656037) // FNV-1a
	add := func(text string) {
		for i := range len(text) {
			hash = (hash ^ uint64(text[i])) * 1099511628211
		}
		hash = (hash ^ 0xff) * 1099511628211
	}
	add(self)
	add(number(uint64(info.ModTime().UnixNano())))
	add(number(uint64(info.Size())))
	add(dir)
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "TMPDIR", "PATH"} {
		add(os.Getenv(name))
	}
	path := Place() + "/hook-" + number(hash) + ".sock"
	if len(path) > 100 { // the limit of the operating systems is a little higher
		return "", errTooLong
	}
	return path, nil
}

// number returns a number in hexadecimal digits.
func number(n uint64) string {
	const digits = "0123456789abcdef"
	var text [16]byte
	for i := range text {
		text[15-i] = digits[n>>(4*i)&15]
	}
	return string(text[:])
}

// Place returns the directory of the sockets. It may not exist.
func Place() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); len(dir) > 1 && dir[0] == '/' {
		return dir + "/belay"
	}
	uid := ""
	for n := os.Getuid(); ; n /= 10 {
		uid = string(rune('0'+n%10)) + uid
		if n < 10 {
			break
		}
	}
	temp := os.TempDir()
	for len(temp) > 1 && temp[len(temp)-1] == '/' {
		temp = temp[:len(temp)-1]
	}
	return temp + "/belay-" + uid
}

// CheckPlace returns an error if the directory of the sockets is not a directory that only
// this user can enter.
func CheckPlace() error {
	info, err := os.Lstat(Place())
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || info.Mode().Perm() != 0o700 || int(stat.Uid) != os.Getuid() {
		return &os.PathError{Op: "use", Path: Place(), Err: os.ErrPermission}
	}
	return nil
}
