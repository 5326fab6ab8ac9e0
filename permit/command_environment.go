package permit

import (
	"path"
	"slices"
	"strings"
)

// These environment variables change what programs do. A * in a name matches any text.
var (
	loadingNames = newNameList("LD_* DYLD_* BASH_ENV ENV ZDOTDIR FPATH BASH_LOADABLES_PATH BASH_FUNC_* PYTHONSTARTUP PYTHONPATH PYTHONHOME PYTHONUSERBASE PYTHONINSPECT PYTHONBREAKPOINT " +
		"PYTHONWARNINGS PYTHONPLATLIBDIR PERL5OPT PERL5LIB PERLLIB PERL5DB RUBYOPT RUBYLIB NODE_PATH NODE_REPL_EXTERNAL_MODULE LUA_PATH* LUA_CPATH* LUA_INIT* PHPRC PHP_INI_SCAN_DIR " +
		"R_PROFILE R_PROFILE_USER R_ENVIRON* JULIA_LOAD_PATH JULIA_DEPOT_PATH GCONV_PATH GLIBC_TUNABLES OPENSSL_CONF OPENSSL_ENGINES OPENSSL_MODULES GTK_MODULES GTK_PATH " +
		"QT_PLUGIN_PATH VIMINIT EXINIT MYVIMRC VIM VIMRUNTIME EMACSLOADPATH ERL_FLAGS ERL_AFLAGS ERL_ZFLAGS ELIXIR_ERL_OPTIONS TCLLIBPATH GUILE_LOAD_PATH " +
		"_JAVA_OPTIONS JDK_JAVA_OPTIONS DOTNET_STARTUP_HOOKS CORECLR_* COR_* GIO_EXTRA_MODULES PKG_CONFIG TEXTDOMAIN* NLSPATH")
	rewordingNames = newNameList("PATH IFS CDPATH PS0 PS4 PROMPT_COMMAND SHELLOPTS BASHOPTS SHELL GLOBIGNORE EXECIGNORE HISTFILE HOME TMPDIR PWD OLDPWD XDG_CONFIG_HOME XDG_CONFIG_DIRS " +
		"POSIXLY_CORRECT _POSIX2_VERSION")
	steeringNames = newNameList("LESSOPEN LESSCLOSE LESSKEY* LESSEDIT MANOPT FCEDIT SUDO_ASKPASS SSH_ASKPASS GIT_ASKPASS RSYNC_RSH RSYNC_PROXY RSYNC_CONNECT_PROG CVS_RSH SVN_SSH " +
		"RIPGREP_CONFIG_PATH TAR_OPTIONS TAPE RMT CURL_HOME WGETRC NETRC INPUTRC MAKEFLAGS MFLAGS MAKEFILES GNUMAKEFLAGS RUSTC RUSTDOC RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER " +
		"CARGO_BUILD_RUSTC* CARGO_HOME RUSTUP_* GOROOT GOTOOLDIR GOENV GOBIN GOCACHEPROG GOVCS GOAUTH CMAKE_*_LAUNCHER DOCKER_HOST DOCKER_CONFIG KUBECONFIG PIP_CONFIG_FILE PIP_INDEX_URL " +
		"PIP_EXTRA_INDEX_URL PIP_TARGET UV_INDEX* UV_DEFAULT_INDEX NPM_CONFIG_* npm_config_* YARN_* BROWSER GNUPGHOME SQLITE_HISTORY PSQLRC PGPASSFILE MYSQL_HOME " +
		"TERMINFO TERMCAP LOCPATH GREP_OPTIONS FZF_* SKIM_* ZIPOPT UNZIP WATCH_INTERVAL SYSTEMD_EDITOR ANSIBLE_* AWS_CONFIG_FILE AWS_ENDPOINT_URL* AWS_SHARED_CREDENTIALS_FILE")
	gitNamesOfVariables = newNameList("GIT_SSH GIT_SSH_* GIT_EXTERNAL_DIFF GIT_CONFIG* GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_COMMON_DIR " +
		"GIT_EXEC_PATH GIT_TEMPLATE_DIR GIT_PROXY_COMMAND GIT_ALLOW_PROTOCOL GIT_PROTOCOL_FROM_USER GIT_ATTR_* GIT_REPLACE_REF_BASE GIT_NAMESPACE GIT_SHELL_PATH GIT_CURL_* " +
		"GIT_HTTP_PROXY_* GIT_SSL_* GIT_BROWSER GIT_QUARANTINE_PATH GIT_DEFAULT_*")
	compilerNames = newNameList("CC CXX CPP LD AR AS NM FC RANLIB STRIP HOSTCC HOSTCXX")
	flagNames     = newNameList("GOFLAGS RUSTFLAGS RUSTDOCFLAGS CGO_LDFLAGS CGO_CFLAGS LDFLAGS CFLAGS CXXFLAGS CPPFLAGS CGO_CXXFLAGS CGO_CPPFLAGS")
	registryNames = newNameList("GOPROXY GOSUMDB GONOSUMDB GONOSUMCHECK GONOPROXY GOPRIVATE GOINSECURE CARGO_REGISTRIES_* CARGO_REGISTRY_* CARGO_NET_* CARGO_SOURCE_* CARGO_HTTP_*")
	// familiarNames are environment variables that never make a program run, load or
	// write anything. A variable that is in none of these lists may do so in some
	// program.
	familiarNames = newNameList("LANG LANGUAGE LC_* TZ TERM COLORTERM COLUMNS LINES NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE CI DEBUG VERBOSE USER LOGNAME DEBIAN_FRONTEND NODE_ENV RAILS_ENV " +
		"RACK_ENV APP_ENV MIX_ENV GO111MODULE GOOS GOARCH GOARM GOAMD64 CGO_ENABLED GOMAXPROCS GOGC GOMEMLIMIT GOTRACEBACK RUST_LOG RUST_BACKTRACE CARGO_TERM_COLOR CARGO_INCREMENTAL " +
		"PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED PYTHONIOENCODING PYTHONUTF8 PYTHONHASHSEED GIT_TERMINAL_PROMPT GIT_AUTHOR_* GIT_COMMITTER_* GIT_OPTIONAL_LOCKS GIT_MERGE_AUTOEDIT " +
		"GIT_LFS_SKIP_SMUDGE GIT_TRACE* PAGER *_PAGER MANPAGER EDITOR VISUAL *_EDITOR LS_COLORS GREP_COLORS GREP_COLOR LESS LESSCHARSET JQ_COLORS BAT_THEME BLOCKSIZE BLOCK_SIZE TIME_STYLE QUOTING_STYLE")
)

// hazardOf returns the danger of setting a variable, for one command or for the rest of
// the line. Some variables are harmless with their usual values.
func hazardOf(name string, value arg) hazard {
	number := value.known && !value.pattern && value.text != "" && isInteger(value.text)
	switch {
	case isOwn(name) && !idleNames.has(name) && (!number || !countingNames.has(name)):
		return hazard{ZoneMachine, "the shell itself uses this variable, and may run its value", true}
	case rewordingNames.has(name):
		return hazard{ZoneMachine, "this variable changes how the shell reads the line", oneOf(name, "PATH IFS CDPATH GLOBIGNORE EXECIGNORE POSIXLY_CORRECT HOME TMPDIR")}
	}
	why, bad := hazardousVariable(name, value)
	switch {
	case !bad:
		return hazard{}
	case registryNames.has(name):
		return hazard{zone: ZoneExternal, why: why}
	default:
		return hazard{zone: ZoneMachine, why: why}
	}
}

// hazardousVariable reports whether a variable can change what programs do, and how.
func hazardousVariable(name string, value arg) (why string, bad bool) {
	plain := value.known && value.text == ""
	switch {
	case strings.HasPrefix(name, "BELAY_"):
		return "this variable controls Belay", true
	case name == "PAGER" || strings.HasSuffix(name, "_PAGER") || name == "MANPAGER":
		return "programs run this value to show their output", !value.known || !isPlainPager(value.text)
	case name == "EDITOR" || name == "VISUAL" || strings.HasSuffix(name, "_EDITOR"):
		return "programs run this value to edit text", !value.known || !isPlainEditor(value.text)
	case name == "LESS":
		return "this value can make less run a program or write a file", !value.known || strings.Trim(value.text, "- RFXSiIMNEeqQrsJgGwW") != "" || strings.Contains(value.text, "--")
	case isProxy(name):
		return "this proxy setting sends network traffic through another machine", !plain
	case name == "NODE_OPTIONS":
		return "this value can make node run other code", !plainFlags(value, "--max-old-space-size --max-semi-space-size --stack-size --openssl-legacy-provider --no-warnings --no-deprecation --trace-warnings "+
			"--trace-deprecation --trace-uncaught --enable-source-maps --unhandled-rejections --experimental-vm-modules --no-experimental-fetch --dns-result-order")
	case name == "JAVA_TOOL_OPTIONS" || name == "MAVEN_OPTS" || name == "GRADLE_OPTS" || name == "JAVA_OPTS":
		return "this value can make java load other code", !value.known || strings.ContainsAny(value.text, "@;|&$`") || strings.Contains(value.text, "agent") || strings.Contains(value.text, "OnError") ||
			strings.Contains(value.text, "OnOutOfMemory") || strings.Contains(value.text, "VMOptionsFile") || strings.Contains(value.text, "XX:Flags")
	case flagNames.has(name):
		return "this value can make the compiler run another program", !value.known || runsFromFlags(value.text)
	case compilerNames.has(name):
		return "builds run this value as a program", !isCompiler(value)
	case registryNames.has(name):
		return "this value selects another package registry, or turns off its checks", !value.known || !oneOf(value.text, "off direct https://proxy.golang.org https://proxy.golang.org,direct sum.golang.org")
	case strings.HasPrefix(name, "GIT_TRACE"):
		return "git writes to the file that this variable names", !value.known || strings.Contains(value.text, "/")
	case oneOf(name, "GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_CONFIG_NOSYSTEM") && value.known && oneOf(value.text, "/dev/null 1 0 true false"):
		return "", false
	case strings.HasPrefix(name, "CARGO_TARGET_") && name != "CARGO_TARGET_DIR":
		return "cargo runs the program that this variable names", true
	case loadingNames.has(name):
		return "programs load code from the paths in this variable", true
	case gitNamesOfVariables.has(name):
		return "this variable changes which files git uses or which programs it runs", true
	case steeringNames.has(name):
		return "this variable can make programs run other programs or use other settings", true
	default:
		return "", false
	}
}

// isUnfamiliar reports whether an environment variable may change what some program does.
// A name with lower-case letters counts as a variable of the script, which programs do
// not use.
func isUnfamiliar(name string) bool {
	return name != "" && name == strings.ToUpper(name) && !familiarNames.has(name) && !isOwn(name)
}

// isPlainPager reports whether a pager only shows text.
func isPlainPager(command string) bool {
	switch command {
	case "", "cat", "less", "more", "less -R", "less -F", "less -FRX", "less -FX", "less -RFX", "head", "true":
		return true
	default:
		return false
	}
}

// isPlainEditor reports whether an editor leaves the text unchanged. Other editors, such
// as ed, ex and vi, read commands from a pipe. These commands can read, write and run
// anything.
func isPlainEditor(command string) bool {
	switch command {
	case "", ":", "true", "cat", "code --wait", "/bin/true", "/usr/bin/true":
		return true
	default:
		return false
	}
}

func isProxy(name string) bool {
	switch strings.ToLower(name) {
	case "http_proxy", "https_proxy", "all_proxy", "ftp_proxy", "socks_proxy", "rsync_proxy":
		return true
	default:
		return false
	}
}

// plainFlags reports whether a value has only the given options, each with or without a
// value.
func plainFlags(value arg, flags string) bool {
	if !value.known {
		return false
	}
	for flag := range strings.FieldsSeq(value.text) {
		name, _, _ := strings.Cut(flag, "=")
		if !oneOf(name, flags) && !isNumber(flag) {
			return false
		}
	}
	return true
}

// runsFromFlags reports whether compiler options name a program that the compiler runs,
// or a file with more options.
func runsFromFlags(flags string) bool {
	for flag := range strings.FieldsSeq(flags) {
		if strings.HasPrefix(flag, "-B") || strings.HasPrefix(flag, "@") || strings.HasPrefix(flag, "-exec") || strings.HasPrefix(flag, "--exec") {
			return true
		}
		for _, hazard := range []string{"toolexec", "overlay=", "vettool", "linker=", "extld", "plugin", "-wrapper", "specs=", "`", "$("} {
			if strings.Contains(flag, hazard) {
				return true
			}
		}
	}
	return false
}

// isCompiler reports whether a value is only a program with options.
func isCompiler(value arg) bool {
	fields := strings.Fields(value.text)
	if !value.known {
		return false
	}
	for i, f := range fields {
		if strings.ContainsAny(f, "`$;|&<>()'\"\\") || i > 0 && !strings.HasPrefix(f, "-") && fields[0] != "ccache" && fields[0] != "sccache" || f == "-c" || f == "-e" || runsFromFlags(f) {
			return false
		}
	}
	if len(fields) > 0 && strings.Contains(fields[0], "/") && !slices.Contains(programDirectories, path.Dir(fields[0])) {
		return false
	}
	return len(fields) == 0 || !oneOf(path.Base(fields[0]), "sh bash env rm curl wget python python3 perl node eval exec")
}
