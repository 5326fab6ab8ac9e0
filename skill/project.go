package skill

import (
	"encoding/json"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/lazyregexp"
)

// marker is a file that identifies the language of a project.
type marker struct {
	// file is the name of the file, or a pattern for path.Match.
	file     string
	language string
	// unless lists other files. If one of these files exists, that file decides the
	// language instead.
	unless []otherwise
	// frameworks are searched in the content of the file. The first one that is found
	// wins. If none is found, the files in further are searched.
	frameworks []framework
	further    []string
}

// otherwise is a file, and the language of projects that have it.
type otherwise struct {
	file, language string
}

// framework has a sign, which is the name of a package or another text in a file.
type framework struct {
	sign, name string
}

// markers are in the order in which they are checked. The first file that exists decides
// the language. Some languages are often used beside a main language, for web pages or
// tools. They come after the main languages.
var markers = []marker{
	{file: "go.mod", language: "Go", frameworks: []framework{
		{"github.com/gin-gonic/gin", "Gin"}, {"github.com/labstack/echo", "Echo"}, {"github.com/gofiber/fiber", "Fiber"}, {"github.com/go-chi/chi", "chi"}, {"github.com/spf13/cobra", "Cobra"},
	}},
	{file: "Cargo.toml", language: "Rust", frameworks: []framework{
		{"tauri", "Tauri"}, {"actix-web", "Actix Web"}, {"axum", "Axum"}, {"rocket", "Rocket"}, {"leptos", "Leptos"}, {"bevy", "Bevy"},
	}},
	{file: "mix.exs", language: "Elixir", frameworks: []framework{{"phoenix", "Phoenix"}}},
	{file: "Gemfile", language: "Ruby", frameworks: []framework{{"rails", "Rails"}, {"sinatra", "Sinatra"}, {"hanami", "Hanami"}}},
	{file: "composer.json", language: "PHP", frameworks: []framework{{"laravel/framework", "Laravel"}, {"symfony/framework-bundle", "Symfony"}, {"slim/slim", "Slim"}}},
	{file: "pyproject.toml", language: "Python", frameworks: python, further: []string{"requirements.txt", "setup.py", "Pipfile"}},
	{file: "requirements.txt", language: "Python", frameworks: python},
	{file: "setup.py", language: "Python", frameworks: python},
	{file: "Pipfile", language: "Python", frameworks: python},
	{file: "manage.py", language: "Python", frameworks: []framework{{"django", "Django"}}},
	{file: "pom.xml", language: "Java", frameworks: java},
	{file: "build.gradle.kts", language: "Kotlin", frameworks: java},
	{file: "build.gradle", language: "Java", unless: []otherwise{{"src/main/groovy", "Groovy"}, {"src/main/kotlin", "Kotlin"}}, frameworks: java},
	{file: "build.sbt", language: "Scala", frameworks: []framework{{"PlayScala", "Play"}, {"akka", "Akka"}, {"zio", "ZIO"}}},
	{file: "*.csproj", language: "C#", frameworks: dotnet},
	{file: "*.fsproj", language: "F#", frameworks: dotnet},
	{file: "*.sln", language: "C#"},
	{file: "pubspec.yaml", language: "Dart", frameworks: []framework{{"flutter", "Flutter"}}},
	{file: "Package.swift", language: "Swift", frameworks: []framework{{"vapor", "Vapor"}}},
	{file: "deno.json", language: "TypeScript", frameworks: []framework{{"fresh", "Fresh"}}},
	{file: "package.json", language: "JavaScript", unless: []otherwise{{"tsconfig.json", "TypeScript"}}, frameworks: []framework{
		{"next", "Next.js"},
		{"nuxt", "Nuxt"},
		{"@remix-run/react", "Remix"},
		{"astro", "Astro"},
		{"@sveltejs/kit", "SvelteKit"},
		{"svelte", "Svelte"},
		{"@angular/core", "Angular"},
		{"expo", "Expo"},
		{"react-native", "React Native"},
		{"electron", "Electron"},
		{"vue", "Vue"},
		{"solid-js", "Solid"},
		{"react", "React"},
		{"@nestjs/core", "NestJS"},
		{"fastify", "Fastify"},
		{"express", "Express"},
	}},
	{file: "*.cabal", language: "Haskell", frameworks: []framework{{"yesod", "Yesod"}, {"servant", "Servant"}}},
	{file: "stack.yaml", language: "Haskell"},
	{file: "dune-project", language: "OCaml"},
	{file: "build.zig", language: "Zig"},
	{file: "rebar.config", language: "Erlang"},
	{file: "Project.toml", language: "Julia"},
	{file: "CMakeLists.txt", language: "C++", frameworks: []framework{{"Qt6", "Qt"}, {"Qt5", "Qt"}}},
	{file: "meson.build", language: "C"},
	{file: "tsconfig.json", language: "TypeScript"},
}

var (
	python = []framework{{"django", "Django"}, {"fastapi", "FastAPI"}, {"flask", "Flask"}, {"streamlit", "Streamlit"}, {"starlette", "Starlette"}}
	java   = []framework{{"spring-boot", "Spring Boot"}, {"org.springframework.boot", "Spring Boot"}, {"org.springframework", "Spring"}, {"io.quarkus", "Quarkus"}, {"io.micronaut", "Micronaut"}, {"com.android.application", "Android"}, {"io.ktor", "Ktor"}}
	dotnet = []framework{{"Microsoft.NET.Sdk.BlazorWebAssembly", "Blazor"}, {"UseMaui", "MAUI"}, {"Microsoft.NET.Sdk.Web", "ASP.NET Core"}}
)

// Detect returns the language and the framework of a project. It looks at the files in
// the project's directory that package managers and compilers use. Unknown results are
// empty.
func Detect(project fs.FS) (language, frame string) {
	entries, err := fs.ReadDir(project, ".")
	if err != nil {
		return "", ""
	}
	for i := range markers {
		m := &markers[i]
		at := slices.IndexFunc(entries, func(e fs.DirEntry) bool {
			ok, err := path.Match(m.file, e.Name())
			return ok && err == nil && !e.IsDir()
		})
		if at < 0 {
			continue
		}
		language = m.language
		for _, other := range m.unless {
			if _, err := fs.Stat(project, other.file); err == nil {
				language = other.language
			}
		}
		for _, file := range append([]string{entries[at].Name()}, m.further...) {
			if frame = m.framework(file, readSome(project, file)); frame != "" {
				break
			}
		}
		return language, frame
	}
	return "", ""
}

// readSome returns the beginning of a file, or "" if the file cannot be read.
func readSome(project fs.FS, file string) string {
	if info, err := fs.Stat(project, file); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	f, err := project.Open(file)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // only read, so an error does not matter
	data, err := io.ReadAll(io.LimitReader(f, 256<<10))
	if err != nil {
		return ""
	}
	return string(data)
}

var comments = lazyregexp.New(`(?m)(?:^|\s)(?:#|//).*$`)

// framework returns the framework whose sign is in the text of a file, or "".
func (m *marker) framework(file, text string) string {
	if text == "" {
		return ""
	}
	if path.Ext(file) == ".json" {
		return inPackages(m.frameworks, text)
	}
	text = comments.ReplaceAllString(text, "")
	for _, f := range m.frameworks {
		// Match whole words only: flask must not match flaskr or my-flask.
		if regexp.MustCompile(`(?i)(?:^|[^\w.-])` + regexp.QuoteMeta(f.sign) + `(?:$|[^\w-]|-starter)`).MatchString(text) {
			return f.name
		}
	}
	return ""
}

// inPackages returns the framework whose package is in a file of npm, Composer or Deno.
func inPackages(frameworks []framework, text string) string {
	var file struct {
		Dependencies    map[string]json.RawMessage `json:"dependencies"`
		DevDependencies map[string]json.RawMessage `json:"devDependencies"` //nolint:tagliatelle // npm's name
		Require         map[string]json.RawMessage `json:"require"`
		Imports         map[string]json.RawMessage `json:"imports"`
	}
	if err := json.Unmarshal([]byte(text), &file); err != nil {
		return ""
	}
	for _, f := range frameworks {
		for _, packages := range []map[string]json.RawMessage{file.Dependencies, file.DevDependencies, file.Require, file.Imports} {
			for name := range packages {
				if name == f.sign || strings.HasPrefix(name, "$"+f.sign+"/") {
					return f.name
				}
			}
		}
	}
	return ""
}
