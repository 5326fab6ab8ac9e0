package console

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// A browser that has logged in holds two things:
//
//   - The cookie, which the browser sends with every request. It holds the token and the time,
//     encrypted.
//     It is enough to read.
//   - The acting key, which console.js keeps in the storage of the origin and sends in a
//     header with every action.
//
// The cookie alone is not enough to act, because browsers send cookies to all ports of a
// host. A page that an agent serves on another port of this machine gets the cookie of a user
// who opens it. It must not be able to approve calls with that cookie.
type seal struct {
	box cipher.AEAD
	key []byte
}

const (
	cookieName = "belay_console"
	keyHeader  = "Belay-Key"
	// cookieAge is how long a browser stays logged in. The time is part of the cookie, so that a
	// copy of it does not live longer.
	cookieAge = 7 * 24 * time.Hour
)

func newSeal(key []byte) (*seal, error) {
	if len(key) != 32 {
		return nil, fmt.Errorf("new console: the key has %d bytes: it needs 32", len(key))
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("new console: %w", err)
	}
	box, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("new console: %w", err)
	}
	return &seal{box: box, key: key}, nil
}

// cookie returns the cookie for a token.
func (s *seal) cookie(r *http.Request, secret string) *http.Cookie {
	nonce := make([]byte, s.box.NonceSize())
	_, _ = rand.Read(nonce) // it never fails
	plain := append(binary.BigEndian.AppendUint64(nil, uint64(time.Now().Unix())), secret...)
	sealed := s.box.Seal(nonce, nonce, plain, []byte(cookieName))
	c := emptyCookie(r) //nolint:gosec // it has all attributes
	c.Value, c.MaxAge = base64.RawURLEncoding.EncodeToString(sealed), int(cookieAge.Seconds())
	return c
}

// emptyCookie returns the cookie without a value.
func emptyCookie(r *http.Request) *http.Cookie {
	secure := r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
	return &http.Cookie{Name: cookieName, Path: "/", HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode} //nolint:gosec // without TLS, on loopback, a browser would not store a secure cookie
}

// token returns the token in the cookie of a request.
func (s *seal) token(r *http.Request) (secret string, ok bool) {
	c, err := r.Cookie(cookieName)
	if err != nil {
		return "", false
	}
	plain, err := s.open(c.Value)
	if err != nil || len(plain) < 8 {
		return "", false
	}
	made := time.Unix(int64(binary.BigEndian.Uint64(plain)), 0)
	return string(plain[8:]), time.Since(made) < cookieAge
}

func (s *seal) open(value string) ([]byte, error) {
	sealed, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil || len(sealed) < s.box.NonceSize() {
		return nil, errors.New("the cookie is damaged")
	}
	n := s.box.NonceSize()
	return s.box.Open(nil, sealed[:n], sealed[n:], []byte(cookieName)) //nolint:wrapcheck // only its existence matters
}

// actingKey returns the acting key for a cookie.
func (s *seal) actingKey(cookie string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte("act " + cookie))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// mayAct reports whether a request has the acting key for its cookie.
func (s *seal) mayAct(r *http.Request) bool {
	c, err := r.Cookie(cookieName)
	return err == nil && subtle.ConstantTimeCompare([]byte(r.Header.Get(keyHeader)), []byte(s.actingKey(c.Value))) == 1
}

// forget removes the cookie.
func forget(w http.ResponseWriter, r *http.Request) {
	c := emptyCookie(r) //nolint:gosec // it has all attributes
	c.MaxAge = -1
	http.SetCookie(w, c)
}
