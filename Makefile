# Everything Belay needs done, on a machine that has Go. `make` alone lists the targets.

# Linters and formatters are pinned in a module of their own, so that programs which embed Belay do not carry them. Go
# keeps the built tools in its build cache: the first use compiles them (minutes), later ones start at once.
TOOL := go tool -modfile=tools/go.mod
# sqlc makes Go from SQL. It has a module of its own again, being larger than all the others.
SQLC := go tool -modfile=tools/sqlc/go.mod sqlc
# templ makes Go from the pages of the console.
TEMPL := go tool -modfile=tools/templ/go.mod templ

# How long each fuzz target runs.
FUZZTIME ?= 10s
# How long the soak tests may take in all.
SOAKTIME ?= 30m
# What the module must compile for, besides the machine's own.
PLATFORMS ?= darwin/arm64 windows/amd64

# A program that is only checked needs no version stamp, and stamping fails where git does not trust the checkout, as in
# many containers. `make build` asks for the stamp again.
export GOFLAGS := $(strip $(shell go env GOFLAGS) -buildvcs=false)
# The repository is a module by itself, whatever workspace surrounds it.
export GOWORK := off
# The product has no cgo; only the race detector needs it.
export CGO_ENABLED := 0

.DEFAULT_GOAL := help
# The machine is kept busy by each step alone, and the output stays readable.
.NOTPARALLEL:

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: test
test: ## everything that must hold before a change is merged; installs what is missing
	@MAKE='$(MAKE)' scripts/steps prepare format-check lint tidy-check generate-check race processes cross

.PHONY: check
check: format-check lint ## format and lint: the quick part of make test

.PHONY: format
format: ## rewrite the Go files as gofumpt wants them
	@$(TOOL) gofumpt -l -w .

.PHONY: format-check
format-check:
	@files=$$($(TOOL) gofumpt -l .) || exit 1; \
	if [ -n "$$files" ]; then echo "not formatted, run make format:"; echo "$$files"; exit 1; fi

# golangci-lint runs everything that go vet runs, and so no other step vets. It reads the packages as the race step compiles
# them: then most tests are compiled once and not twice.
.PHONY: lint
lint: compiler
	@linter=$$($(TOOL) -n golangci-lint) && CGO_ENABLED=1 GOFLAGS="$(GOFLAGS) $(RACE)" "$$linter" run

# A module of tools changes only with its own files, and to tidy it Go fetches everything that its tools need for their tests.
.PHONY: tidy-check
tidy-check: tidy-check/.
	@for dir in tools tools/sqlc tools/templ serve/testdata/openai; do \
		scripts/checked "tidy-check/$$dir" "$$dir/go.mod" "$$dir/go.sum" "$$dir/*.go" || exit 1; done

tidy-check/%:
	@go -C $* mod tidy -diff || { echo "$*/go.mod or $*/go.sum is not tidy: run go -C $* mod tidy"; exit 1; }

.PHONY: generate
generate: ## rewrite what is made from the code: queries, pages, tables, schemas, snippets in the docs
	@$(SQLC) generate -f store/internal/table/sqlc.yaml
	@$(TEMPL) generate -path serve/console -log-level error
	@go run ./internal/gendocs
	@go test -run '^TestDocsSnippets$$' -count 1 ./internal/repotest -update

# The picture of the README is drawn from a real run: times differ, so it is made by hand and not compared.
.PHONY: picture
picture: ## take the turn of the demo and draw what its hooks did, for the README
	@go run ./internal/picture docs/turn.svg

# The pictures of the console are taken from a real server in a real browser.
.PHONY: pictures
pictures: browser ## take pictures of the console, for the docs
	@all=$$(mktemp -d) && go test ./serve/console -count 1 -run '^TestPhoneAndAccess$$' -pictures "$$all" && mkdir -p docs/pictures && \
	for p in inbox=approvals conversation=bar-tool hooks=hooks usage=usage; do cp "$$all/$${p#*=}-wide-light.png" "docs/pictures/$${p%=*}.png"; done && \
	cp "$$all/approval-shell-phone-dark.png" docs/pictures/phone.png && echo "all pictures are in $$all"

# The snippets are compared by internal/repotest.
.PHONY: generate-check
generate-check:
	@scripts/checked queries-check store/internal/table tools/sqlc
	@scripts/checked pages-check 'serve/console/*.templ' 'serve/console/*_templ.go' tools/templ
	@go run ./internal/gendocs -check || { echo "generated files are stale: run make generate and commit the result"; exit 1; }

.PHONY: queries-check
queries-check:
	@$(SQLC) diff -f store/internal/table/sqlc.yaml || { echo "the queries' Go code is stale: run make generate and commit the result"; exit 1; }
	@$(SQLC) compile -f store/internal/table/sqlc.postgresql.yaml || { echo "PostgreSQL does not read the shared tables or queries"; exit 1; }

.PHONY: pages-check
pages-check:
	@$(TEMPL) generate -path serve/console -log-level error && git diff --exit-code --stat -- serve/console || { echo "the pages' Go code is stale: run make generate and commit the result"; exit 1; }

# The names and the API are compared with those of the last release. The clone must have its tag. VERSION=v0.2.0 says what is made:
# before v1 a minor version may change Go packages.
.PHONY: api-check
api-check: ## name what the Go packages and the HTTP API of the last release had and this tree has not
	@go run ./internal/gendocs -since-release -version "$(VERSION)"

# The race detector needs a C compiler, on Linux its headers too.
.PHONY: compiler
compiler:
	@scripts/ensure-debian 'printf "#include <stdlib.h>\nint main(void) { return 0; }\n" | $$(go env CC) -x c -o /dev/null -' gcc libc6-dev

# The chat is tested on a real screen.
.PHONY: screen
screen:
	@scripts/ensure-debian 'tmux -V' tmux

# The console is tested in a real browser, and checked with axe-core for people who do not see or use a mouse. It is fetched
# here, because tests use no network but loopback.
.PHONY: browser
browser: languages
	@scripts/ensure-debian 'chromium --version' chromium
	@scripts/ensure-debian 'npm --version' npm
	@cd serve/console/testdata && npm ls --silent >/dev/null 2>&1 || npm ci --silent --no-audit --no-fund

# The manual pages are rendered, as users see them.
.PHONY: manual
manual:
	@[ "$$(uname)" != Linux ] || scripts/ensure-debian 'man --version' man-db

# Commands are confined by what the machine has; the tests want to see both ways. Elsewhere there is no sandbox to test.
.PHONY: confinement
confinement:
	@[ "$$(uname)" != Linux ] || scripts/ensure-debian 'bwrap --version' bubblewrap

# The store for many machines is tested on a server that the tests start, from PATH or from where Debian has it.
.PHONY: database
database:
	@scripts/ensure-debian 'for p in initdb postgres; do command -v $$p || ls /usr/lib/postgresql/*/bin/$$p || exit 1; done' postgresql

# The files of a release are fetched and read by the programs that users have for that.
.PHONY: packages
packages:
	@[ "$$(uname)" != Linux ] || { scripts/ensure-debian 'dpkg-deb --version' dpkg && scripts/ensure-debian 'buildah --version' buildah; }
	@scripts/ensure-debian 'openssl version' openssl
	@scripts/ensure-debian 'curl --version' curl

# The example workers are in three languages.
.PHONY: languages
languages:
	@scripts/ensure-debian 'python3 --version && node --version' python3 nodejs

# The OpenAI endpoints are tested with the official SDKs. They are fetched here, because tests use no network but loopback.
.PHONY: clients
clients: languages ## fetch and build the SDKs that the tests use as clients
	@scripts/ensure-debian 'npm --version' npm
	@go -C serve/testdata/openai build -o /dev/null .
	@cd serve/testdata/openai && npm ls --silent >/dev/null 2>&1 || npm ci --silent --no-audit --no-fund

# What these packages test happens in processes of their own, many of them: the race detector would see little and cost minutes.
PROCESSES := ./cmd/belay ./engine/internal/fleet ./internal/crashtest ./internal/demo/whole ./internal/killtest ./internal/load ./internal/release ./sandbox ./store/postgres/internal/crash

# The race detector leaves out the SQLite library: its code is translated from C and has locks of its own. Watching it makes the
# tests of the stores three times slower.
RACE := -race -gcflags=modernc.org/...=-race=false

# Tests of other packages that only start programs: half of what they cost was the start of the test program with the race detector.
PROCESS_TESTS := ^TestAttacks(AgainstTheSandbox|WorkWithoutASandbox)$$

# No test program is looked at with a debugger: without its data, linking each of them takes half the time.
LINK := -ldflags=-s

.PHONY: race
race: compiler screen browser manual confinement database languages clients ## all tests under the race detector, but for those that start many processes
	@CGO_ENABLED=1 go test $(RACE) $(LINK) -vet=off -timeout 20m -skip '$(PROCESS_TESTS)' $$(go list ./... | grep -vxF "$$(go list $(PROCESSES))")

.PHONY: processes
processes: confinement database packages ## the tests that start many processes, or kill them
	@failed=0; go test $(LINK) -vet=off $(PROCESSES) || failed=1; \
	go test $(LINK) -vet=off -run '$(PROCESS_TESTS)' ./permit || failed=1; exit $$failed

# The seeds of every target run with the tests. The search for new inputs finds what it finds, whatever a change was about:
# it has a command of its own, and what it finds becomes a seed.
.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (default 10s)
	@scripts/fuzz $(FUZZTIME)

.PHONY: cross
cross: ## check that everything compiles for each of PLATFORMS
	@go run ./internal/cross $(PLATFORMS)

# Machine code for another platform takes minutes, and says nothing about Belay that its types do not say.
.PHONY: cross-build
cross-build: ## vet, build and link for each of PLATFORMS: before a release
	@scripts/cross $(PLATFORMS)

.PHONY: bench
bench: ## measure each promise about speed; one line per promise, last (ONLY="hook turn": those that begin so)
	@go run ./internal/bench $(ONLY)

.PHONY: load
load: database ## measure what this machine holds, for docs/scale.md (ONLY="sqlite sessions streams postgres": some parts)
	@go run ./internal/load $(ONLY)

# With a key you can record what the real service says. The tests replay the recording.
.PHONY: record
record: ## have short conversations with a real service (PROVIDER=anthropic, openai or gemini, and its key) and keep them
	@case "$(PROVIDER)" in anthropic|openai|gemini) ;; *) echo "which one? make record PROVIDER=anthropic, openai or gemini"; exit 2 ;; esac
	@BELAY_RECORD=1 go test -run Recordings -count 1 -v ./provider/$(PROVIDER)

.PHONY: soak
soak: compiler database ## the long tests (build tag soak), bounded by SOAKTIME
	@CGO_ENABLED=1 go test $(RACE) -vet=off -tags soak -run '^TestSoak' -count 1 -timeout $(SOAKTIME) ./...

# The working tree must be clean. Each program is built twice, from two directories and with two caches.
RELEASE_PLATFORMS ?= linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64
.PHONY: release
release: ## make the files of a release in dist/ (VERSION=v0.1.0; KEY=FILE signs them)
	@[ -n "$(VERSION)" ] || { echo "which version? make release VERSION=v0.1.0"; exit 2; }
	@go run ./internal/release -version "$(VERSION)" -platforms "$(RELEASE_PLATFORMS)" $(if $(KEY),-key "$(KEY)")

.PHONY: site
site: ## make static pages from docs/ in site/, with a search that works offline
	@go run ./internal/site

.PHONY: build
build: ## build the command into bin/
	@go build -trimpath -buildvcs=auto -o bin/ ./cmd/belay

# Debian's packages and the modules of npm and Go come over the network, and the tools keep both cores busy: together they
# take as long as the slower one.
.PHONY: prepare
prepare: compiler
	@$(MAKE) --no-print-directory programs & programs=$$!; \
	$(MAKE) --no-print-directory tools-install; tools=$$?; \
	wait $$programs && [ $$tools -eq 0 ]

.PHONY: programs
programs: screen manual confinement packages database browser clients
	@go mod download

.PHONY: tools-install
tools-install: compiler ## fetch and build the pinned tools ahead of their first use
	@$(TOOL) golangci-lint version
	@$(TOOL) gofumpt -version
