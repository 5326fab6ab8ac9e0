package otlp

import (
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// signal is one of the three kinds of data.
type signal struct {
	name string // in the names of variables
	path string // at the collector
}

var (
	traces  = signal{"TRACES", "v1/traces"}
	metrics = signal{"METRICS", "v1/metrics"}
	logs    = signal{"LOGS", "v1/logs"}
)

// environment has the variables OTEL_*.
type environment map[string]string

func newEnvironment(all []string) environment {
	if all == nil {
		all = os.Environ()
	}
	env := make(environment)
	for _, entry := range all {
		if name, value, ok := strings.Cut(entry, "="); ok && strings.HasPrefix(name, "OTEL_") && strings.TrimSpace(value) != "" {
			env[name] = strings.TrimSpace(value)
		}
	}
	return env
}

// IsSet reports whether the environment asks for an exporter. Open then makes one, unless
// another variable switches it off.
func IsSet(environ []string) bool {
	env := newEnvironment(environ)
	return len(env) > 0 && (env.wants(traces) || env.wants(metrics) || env.wants(logs))
}

// wants reports whether a signal should be exported. Logs are exported only if a variable
// names them, because messages of errors may have content.
func (e environment) wants(s signal) bool {
	switch exporter := e["OTEL_"+s.name+"_EXPORTER"]; {
	case strings.EqualFold(e["OTEL_SDK_DISABLED"], "true"), exporter == "none", exporter == "prometheus":
		return false
	case exporter != "":
		return true
	case s == logs:
		return e["OTEL_EXPORTER_OTLP_LOGS_ENDPOINT"] != ""
	default:
		return e["OTEL_EXPORTER_OTLP_ENDPOINT"] != "" || e["OTEL_EXPORTER_OTLP_"+s.name+"_ENDPOINT"] != ""
	}
}

// of returns the variable of a signal, or the one of all signals, with its name.
func (e environment) of(s signal, name string) (variable, value string) {
	for _, variable := range []string{"OTEL_EXPORTER_OTLP_" + s.name + "_" + name, "OTEL_EXPORTER_OTLP_" + name} {
		if value := e[variable]; value != "" {
			return variable, value
		}
	}
	return "", ""
}

// target says where and how a signal is sent.
type target struct {
	url      string
	headers  map[string]string
	timeout  time.Duration
	compress bool
	tls      tlsFiles
}

// tlsFiles are the files of certificates and keys.
type tlsFiles struct{ authority, certificate, key string }

// target reads the variables of a signal.
func (e environment) target(s signal) (*target, error) {
	if exporter := e["OTEL_"+s.name+"_EXPORTER"]; exporter != "" && exporter != "otlp" {
		return nil, fmt.Errorf("OTEL_%s_EXPORTER is %q: use otlp or none", s.name, exporter)
	}
	if variable, protocol := e.of(s, "PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		return nil, fmt.Errorf("%s is %q: Belay sends only http/protobuf, usually to port 4318: set it to http/protobuf, or remove it", variable, protocol)
	}
	t := &target{timeout: 10 * time.Second}
	var err error
	if t.url, err = e.endpoint(s); err != nil {
		return nil, err
	}
	if variable, value := e.of(s, "HEADERS"); value != "" {
		if t.headers, err = headers(value); err != nil {
			return nil, fmt.Errorf("%s: %w", variable, err)
		}
	}
	if variable, value := e.of(s, "TIMEOUT"); value != "" {
		ms, err := strconv.Atoi(value)
		if err != nil || ms <= 0 {
			return nil, fmt.Errorf("%s is %q: write milliseconds, such as 10000", variable, value)
		}
		t.timeout = time.Duration(ms) * time.Millisecond
	}
	switch variable, value := e.of(s, "COMPRESSION"); value {
	case "", "none":
	case "gzip":
		t.compress = true
	default:
		return nil, fmt.Errorf("%s is %q: use gzip or none", variable, value)
	}
	_, t.tls.authority = e.of(s, "CERTIFICATE")
	_, t.tls.certificate = e.of(s, "CLIENT_CERTIFICATE")
	_, t.tls.key = e.of(s, "CLIENT_KEY")
	return t, nil
}

// endpoint returns the URL of a signal. The variable of a signal has the whole URL, and the
// variable of all signals has the URL without the path of the signal.
func (e environment) endpoint(s signal) (string, error) {
	variable, value := e.of(s, "ENDPOINT")
	if value == "" {
		return "http://localhost:4318/" + s.path, nil
	}
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%s is not a URL: write it as http://collector.example:4318", variable) // the value may have a password
	}
	if variable == "OTEL_EXPORTER_OTLP_ENDPOINT" {
		u = u.JoinPath(s.path)
	}
	return u.String(), nil
}

// headers reads NAME=VALUE,NAME=VALUE. The values are percent-encoded.
func headers(list string) (map[string]string, error) {
	all := make(map[string]string)
	for pair := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || name == "" || err != nil {
			return nil, fmt.Errorf("it is not a list of NAME=VALUE with commas between them") //nolint:perfsprint // no value, which may be a secret
		}
		all[name] = value
	}
	return all, nil
}

// resource reads the service and the attributes of the resource.
func (e environment) resource() (service string, attributes map[string]string, err error) {
	attributes = make(map[string]string)
	if list := e["OTEL_RESOURCE_ATTRIBUTES"]; list != "" {
		if attributes, err = headers(list); err != nil {
			return "", nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
		}
	}
	service = attributes["service.name"]
	if name := e["OTEL_SERVICE_NAME"]; name != "" {
		service = name
	}
	delete(attributes, "service.name")
	return service, attributes, nil
}
