package permit

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// SPEC P-02
func TestFunctionsCountWithAllTheirBodies(t *testing.T) {
	t.Parallel()
	judgeLines(t, []lineCase{
		{`f(){ rm -rf ~; }; false && f(){ :; }; f`, 6, "destructive.files"},
		{`if true; then f(){ rm -rf ~; }; else f(){ :; }; fi; f`, 6, "destructive.files"},
		{`f(){ echo; }; for i in $(ls); do f http://evil.com; f(){ curl $1; }; done`, 3, ""},
		{`false && rm(){ :; }; rm -rf ~`, 6, "destructive.files"},
		{`c=echo; f(){ local c; ${c:-touch} M; }; f`, 5, ""},
		{`echo(){ printf 'touch M'; }; echo ls | sh`, 5, ""},
		{`echo(){ printf touch; }; $(echo ls) M`, 5, ""},
	})
}

// SPEC P-02
func TestVariablesThatAreNotKnown(t *testing.T) {
	t.Parallel()
	judgeLines(t, []lineCase{
		{`declare -n r=c; c=echo; r=touch; $c M`, 5, ""},
		{`c=; r=c; : ${!r:=touch}; ${c:-echo} M`, 5, ""},
		{`c=echo; case a in a) c=touch ;& b) $c M;; esac`, 5, ""},
		{`c=echo; case a in a) c=touch ;;& b) $c M;; esac`, 5, ""},
		{`c=echo; while :; do $c M; read -r c < f; done`, 5, ""},
		{`c=echo; while :; do $c M; printf -v c touch; done`, 5, ""},
		{`c=echo; while :; do $c M; mapfile c < f; done`, 5, ""},
		{`c=echo; while getopts a c; do $c M; done`, 5, ""},
		{`_=ls; : touch; $_ M`, 5, ""},
		{`FUNCNAME=ls; $FUNCNAME M`, 5, ""},
		{`BASH_COMMAND=ls; $BASH_COMMAND M`, 5, ""},
		{`c=ls; coproc c { cat; }; $c M`, 5, ""},
		{`c=ls; exec {c}>f; $c M`, 5, ""},
		{`c=ls; wait -p c; $c M`, 5, ""},
		{`x=abc; echo ${x:1:2} ${x:1}`, 0, ""},
		{`eval ls *`, 5, ""},
		{`x='*'; echo ls $x | sh`, 5, ""},
		{`x=ls; echo $x | sh`, 0, ""},
		{`eval "ls src"`, 0, ""},
		{`for PATH in ./bin; do ls; done`, 5, ""},
		{`declare -l c=TOUCH; $c M`, 5, ""},
		{`hugo deploy $x`, 5, ""},
	})
}

// SPEC P-02
func TestWhatIsComputedIsANumber(t *testing.T) {
	t.Parallel()
	judgeLines(t, []lineCase{
		{`x=$'a[\x24(touch M)]'; (( x ))`, 5, ""},
		{`[[ $'a[\x24(touch M)]' -eq 0 ]]`, 5, ""},
		{`d=$; x="a[${d}(touch M)]"; echo $((x))`, 5, ""},
		{`let $'x=a[\x24(id)]'`, 5, ""},
		{`declare -i x; x=$'a[\x24(id)]'`, 5, ""},
		{`declare -i x=$'a[\x24(id)]'`, 5, ""},
		{`x=$'a[\x24(id)]'; y=abc; echo ${y:x}`, 5, ""},
		{`x=$'a[\x24(id)]'; echo ${!x}`, 5, ""},
		{`i=$'a[\x24(id)]'; a=(1 2); echo ${a[i]}`, 5, ""},
		{`read x < file; (( x ))`, 5, ""},
		{`x=$(cat f); (( x ))`, 5, ""},
		{`x=$(cat f); [[ $x -gt 3 ]]`, 5, ""},
		{`x='y'; y='a[$(id)]'; (( x ))`, 5, ""},
		{`: 'a[$(id)]'; (( _ ))`, 5, ""},
		{`y='a[$(id)]'; a[y]=1`, 5, ""},
		{`read x < f; a[$x]=1`, 5, ""},
		{`unset 'a[$(id)]'`, 5, ""},
		{`read 'a[$(id)]' < f`, 5, ""},
		{`printf -v 'a[x]' 1; x='b[$(id)]'; printf -v 'a[x]' 1`, 5, ""},
		{`test -v 'a[$(id)]'`, 5, ""},
		{`declare -i n; read n < f`, 5, ""},
		{`while read x; do (( x )); done < f`, 5, ""},
		{`n=5; while [ $n -gt 0 ]; do (( n-- )); n=$(cat f); done`, 5, ""},
		{`for ((i=0;i<10;i++)); do echo $i; done`, 0, ""},
		{`i=0; while [ $i -lt 10 ]; do i=$((i+1)); done`, 0, ""},
		{`n=$(wc -l < main.go); echo $((n+1))`, 0, ""},
		{`for i in 1 2 3; do echo $((i*2)); done`, 0, ""},
		{`for i in $(seq 1 10); do echo $((i*2)); done`, 0, ""},
		{`n=$(ls | wc -l); if [[ $n -gt 3 ]]; then echo many; fi`, 0, ""},
		{`n=$(grep -c foo main.go); if (( n > 0 )); then echo yes; fi`, 0, ""},
		{`start=$(date +%s); ls; end=$(date +%s); echo $((end - start))`, 0, ""},
		{`x=5; let x+=1; echo $x`, 0, ""},
		{`x=5; let "x = x + 1"; echo $x`, 0, ""},
		{`declare -i n=5; n=n+1; n+=2; echo $n`, 0, ""},
		{`a=(1 2 3); echo ${a[0]} ${a[@]} ${#a[@]}; for i in "${!a[@]}"; do echo $i; done`, 0, ""},
		{`f(){ echo $(($1 + 1)); }; f 3`, 0, ""},
		{`total=0; for f in src/*.txt; do n=$(wc -c < main.go); total=$((total + n)); done; echo $total`, 0, ""},
		{`x=1; x=$((x+1)); echo $((x*2)) $((RANDOM % 5))`, 0, ""},
		{`[[ $(git status --porcelain | wc -l) -gt 0 ]] && echo dirty`, 0, ""},
		{`if [[ $# -gt 1 ]]; then echo; fi`, 0, ""},
		{`export x='a[$(id)]'; sh -c 'echo $((x))'`, 5, ""},
		{`x='a[$(id)]' bash -c '(( x ))'`, 5, ""},
		{`f(){ x='a[$(id)]'; return; x=1; }; f; (( x ))`, 5, ""},
	})
}

// SPEC P-02, P-06
func TestNamesThatAPipeHandsOver(t *testing.T) {
	t.Parallel()
	judgeLines(t, []lineCase{
		{`printf '%s/%s' /etc passwd | xargs cat`, 5, ""},
		{`xargs -a list cat`, 5, ""},
		{`cat list | xargs head`, 5, ""},
		{`echo "'/etc/passwd'" | xargs cat`, 5, ""},
		{`sort --files0-from=list`, 5, ""},
		{`wc --files0-from=list`, 5, ""},
		{`du --files0-from=list`, 5, ""},
		{`file -f list`, 5, ""},
		{`cpio -o < list`, 5, ""},
		{`find . -name '*.go' -print0 | xargs -0 cat`, 0, ""},
		{`git ls-files -z | xargs -0 wc -l`, 0, ""},
		{`git ls-files | xargs wc -l`, 0, ""},
		{`rg -l foo | xargs head`, 0, ""},
		{`git diff --name-only | xargs gofmt -l`, 0, ""},
		{`git ls-files '*.go' | grep -v vendor | xargs wc -l`, 0, ""},
		{`ls | xargs echo`, 0, ""},
		{`find . -name '*.txt' | xargs grep foo`, 0, ""},
		{`find . -type f | head -5 | xargs -I{} head {}`, 0, ""},
		{`git ls-files --format=/etc/passwd | xargs cat`, 5, ""},
		{`find . -printf '/etc/passwd\n' | xargs cat`, 5, ""},
		{`find /etc -type f | xargs cat`, 5, "shell.outside"},
		{`rg -l --path-separator x foo | xargs cat`, 5, ""},
		{`find . | sed s,^,/etc/, | xargs cat`, 5, ""},
		{`find . -name '*.go' -print0 | sort -z | xargs -0 cat`, 0, ""},
		{`find . -print0 | sort | xargs -0 cat`, 5, ""},
		{`rg -l foo src | xargs -I{} cp {} {}.bak`, 1, ""},
		{`git ls-files | xargs -I{} sh -c 'cat {}'`, 5, ""},
		{`git ls-files | xargs rm`, 5, "destructive.files self.files"},
		{`for f in $(git ls-files '*.go'); do gofmt -w $f; done`, 1, ""},
		{`for f in $(git ls-files '*.go'); do gofmt -l $f; done`, 0, ""},
		{`for f in $(find . -name '*.txt'); do wc -l "$f"; done`, 0, ""},
		{`for f in $(find . -type f); do sed -i s/a/b/ $f; done`, 5, ""},
		{`for f in $(git ls-files '*.go'); do $f; done`, 5, ""},
		{`for f in $(git ls-files '*.go'); do eval $f; done`, 5, ""},
		{`for f in $(cat list); do cat $f; done`, 5, ""},
		{`file -f list`, 5, ""},
		{`find . -name '*.txt' | cpio -o`, 0, ""},
		{`rg -l foo src | xargs sed -i s/a/b/`, 1, ""},
		{`git ls-files '*.go' | xargs sed -i s/a/b/`, 1, ""},
		{`git ls-files | xargs sed -i s/a/b/`, 5, "self.files"},
		{`git ls-files '*.yaml' | xargs sed -i s/a/b/`, 5, "self.files"},
		{`mkdir -p 'a /etc'; touch 'a /etc/passwd'; find . -type f | xargs cat`, 5, ""},
		{`tar xf x.tar; find . -type f | xargs cat`, 5, ""},
		{`mkdir -p build; cp main.go build/; find . -type f | xargs cat`, 1, ""},
		{`git add -A && git diff --cached --name-only | xargs gofmt -l`, 1, ""},
	})
}

// SPEC P-03, P-06
func TestWhatStandsInTheProject(t *testing.T) {
	t.Parallel()
	judgeLines(t, []lineCase{
		{`declare -A m; m[a]=1; k=b; m[$k]=2; echo ${m[a]}`, 0, ""},
		{`for v in A B; do echo ${!v}; done`, 0, ""},
		{`cd src; while :; do cd ..; break; cd src; done; echo x > ../notes`, 5, "shell.outside"},
		{`echo ls * | sh`, 5, ""},
		{`cd src; cd ..; cd ..; cat x`, 5, "shell.outside"},
		{`cd "$(git rev-parse --show-toplevel)" && go test ./...`, 2, ""},
		{`cd src && cd "$(git rev-parse --show-toplevel)" && go test ./...`, 2, ""},
		{`PYTHONPATH=src pytest`, 2, ""},
		{`PYTHONPATH=.:src NODE_PATH=src node x.js`, 2, ""},
		{`env PYTHONPATH=src pytest`, 2, ""},
		{`PYTHONPATH=OUT pytest`, 5, ""},
		{`PYTHONPATH=/tmp/x pytest`, 5, ""},
		{`rails test`, 2, ""},
		{`hugo`, 2, ""},
		{`rails runner 'system("x")'`, 5, ""},
		{`npx tsc --noEmit`, 5, ""},
		{`FZF_DEFAULT_COMMAND='curl http://evil.com' fzf`, 5, ""},
		{`FZF_DEFAULT_OPTS='--bind start:execute(id)' fzf`, 5, ""},
		{`socat TCP:169.254.169.254:80 -`, 5, "net.metadata"},
		{`lynx http://169.254.169.254`, 5, "net.metadata"},
		{`ab http://169.254.169.254/`, 5, "net.metadata"},
		{`GOPROXY=http://169.254.169.254 go get x`, 5, "net.metadata"},
		{`env GOPROXY=http://169.254.169.254,direct go get x`, 5, "net.metadata"},
		{`go get 169.254.169.254/x`, 5, "net.metadata"},
		{`docker pull 169.254.169.254/x`, 5, "net.metadata"},
		{`go get github.com/x/y@latest`, 3, ""},
		{`docker pull ghcr.io/x/y:1`, 3, ""},
		{`GOPROXY=https://goproxy.example.com go get x`, 4, ""},
		{`hugo --minify`, 2, ""},
	})
}

// After a cd through a link, cd .. leads to the directory of the link, not to the parent
// of its target.
//
// SPEC P-02, P-06
func TestDirectoriesGoByTheNamesThatTheShellHasForThem(t *testing.T) {
	t.Parallel()
	f, project := looker(t)
	if err := os.Symlink(filepath.Join("src", "deep"), filepath.Join(project, "link")); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]Zone{
		"cd link; cat ../a":                           ZoneSafe,
		"cd link; cd ..; cat a":                       ZoneSafe,
		"cd link; cd ..; cat ../a":                    ZoneMachine,
		"cd link && cd .. && echo x > ../a":           ZoneMachine,
		"cd -P link; cd ..; cat ../a":                 ZoneSafe,
		"cd link; cat ${PWD%/*}/a":                    ZoneSafe,
		"cd link; cat ${PWD%/*}/../a":                 ZoneMachine,
		"cd link; cat $(pwd)/a":                       ZoneMachine, // the analysis does not resolve a substitution inside a word
		"pushd link; cd ..; cat ../a":                 ZoneMachine,
		"cd src/deep; while :; do cd ..; cat a; done": ZoneMachine,
	} {
		if zone, _ := verdict(f.analyse(line)); zone != want {
			t.Errorf("%s is zone %d, want %d", line, zone, want)
		}
	}
}

// The analysis finds file names that xargs or the shell would misread. It also finds such
// names if the line itself creates the files.
//
// SPEC P-02, P-06
func TestOddNamesAreSeen(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]Zone{
		"plain.txt": ZoneSafe, "two words.txt": ZoneSafe, "a.b-c": ZoneSafe,
		"a /etc/passwd": ZoneMachine, "it's": ZoneMachine, `say "hi"`: ZoneMachine, `back\slash`: ZoneMachine, "x\n/etc/passwd": ZoneMachine, "x ../y": ZoneMachine,
		"-rf": ZoneMachine, "x --output=y": ZoneMachine, "x\t": ZoneMachine,
	} {
		f, project := looker(t)
		path := filepath.Join(project, "src", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{"git ls-files | xargs cat", "rg -l x src | xargs -I{} head {}", "for f in $(git ls-files); do cat $f; done"} {
			if zone, _ := verdict(f.analyse(line)); zone != want {
				t.Errorf("%s, with a file called %q: zone %d, want %d", line, name, zone, want)
			}
		}
		if zone, _ := verdict(f.analyse("find . -print0 | xargs -0 cat")); zone != ZoneSafe {
			t.Errorf("with zeros, and a file called %q: zone %d", name, zone)
		}
	}
}

// An installed program need not be downloaded.
//
// SPEC P-03
func TestInstalledPackagesAreTheProjects(t *testing.T) {
	t.Parallel()
	f, project := looker(t)
	bin := filepath.Join(project, "node_modules", ".bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "tsc"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/bin/true", filepath.Join(bin, "elsewhere")); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]Zone{
		"npx tsc --noEmit": ZoneBuild, "npx other": ZoneMachine, "npx tsc@5": ZoneMachine, "npx -p evil tsc": ZoneMachine, "npx elsewhere": ZoneMachine, "npx ../tsc": ZoneMachine,
		"cd src && npx tsc": ZoneMachine,
	} {
		if zone, _ := verdict(f.analyse(line)); zone != want {
			t.Errorf("%s is zone %d, want %d", line, zone, want)
		}
	}
}

// The analysis of a line examines a limited number of files and statements, however
// complex the line is.
//
// SPEC P-02
func TestLooksAreBounded(t *testing.T) {
	t.Parallel()
	f, project := looker(t)
	for i := range 300 {
		if err := os.WriteFile(filepath.Join(project, "src", strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(project, "src", "zzz")); err != nil {
		t.Fatal(err)
	}
	if zone, ids := verdict(f.analyse("cat src/*")); zone != ZoneMachine || ids != shellOutside {
		t.Errorf("a link among many files: zone %d [%s]", zone, ids)
	}
	for _, line := range []string{"cat /*/*/*/*/*", strings.Repeat("cat src/*;", 500), strings.Repeat("git ls-files | xargs cat;", 500)} {
		a := &analysis{floor: f, state: state{dirs: []string{f.project.path}}}
		a.parse(line)
		if zone, _ := verdict(a.found); zone != ZoneMachine || a.looks > mostLooks+1000 {
			t.Errorf("%.30s… is zone %d after %d looks", line, zone, a.looks)
		}
	}
}

// The state is not copied for every part of a chain.
func TestChainsAreCheap(t *testing.T) { //nolint:paralleltest // it counts what is allocated
	f, _ := looker(t)
	for _, line := range []string{numbered("a%d=1 && ", 4_500) + "ls", numbered("a%d=1; ", 4_500) + "ls", numbered("if :; then a%d=1; fi; ", 900) + "ls"} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f.analyse(line)
		runtime.ReadMemStats(&after)
		if cost := (after.TotalAlloc - before.TotalAlloc) >> 20; cost > 64 {
			t.Errorf("%.30s… takes %d MiB", line, cost)
		}
	}
}

// A tree is an immutable map.
func TestTree(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	type pair struct {
		tree *tree[int]
		want map[string]int
	}
	all := []pair{{nil, map[string]int{}}}
	for range 2_000 {
		from := all[random.IntN(len(all))]
		next := pair{from.tree, maps.Clone(from.want)}
		name := "v" + strconv.Itoa(random.IntN(40))
		switch other := all[random.IntN(len(all))]; random.IntN(5) {
		case 0, 1:
			value := random.IntN(3)
			next.tree, next.want[name] = from.tree.with(name, value), value
		case 2:
			next.tree = from.tree.without(name)
			delete(next.want, name)
		case 3:
			next.tree = common(from.tree, other.tree)
			maps.DeleteFunc(next.want, func(name string, value int) bool {
				theirs, ok := other.want[name]
				return !ok || theirs != value
			})
			if (next.tree == from.tree) != maps.Equal(next.want, from.want) {
				t.Fatal("two equal trees are not the same tree")
			}
		case 4:
			next.tree = united(from.tree, other.tree)
			for name, value := range other.want {
				if _, ok := next.want[name]; !ok {
					next.want[name] = value
				}
			}
			if (next.tree == from.tree) != maps.Equal(next.want, from.want) {
				t.Fatal("a tree that has not grown is another one")
			}
		}
		if all = append(all, next); len(all) > 50 {
			all = all[1:]
		}
	}
	for _, p := range all {
		for i := range 40 {
			name := "v" + strconv.Itoa(i)
			value, ok := p.tree.get(name)
			if want, has := p.want[name]; ok != has || value != want {
				t.Fatalf("%s is %d, %v, want %d, %v", name, value, ok, want, has)
			}
		}
	}
}
