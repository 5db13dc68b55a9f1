// What containers of tests run: without arguments it does nothing until it is told to end.
//
//	say WORD...          print them
//	tick                 print a number each second
//	follow SERVER NAME   watch a ConfigMap with the account that the pod has, as a controller in it does, and print
//	                     each number that it holds; a watch that ends is resumed where it was
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const account = "/var/run/secrets/kubernetes.io/serviceaccount/"

func main() {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-told
		os.Exit(0)
	}()
	words := append(os.Args[1:], "", "", "")
	switch words[0] {
	case "say":
		fmt.Println(strings.Join(os.Args[2:], " "))
	case "tick":
		for number := 0; ; number++ {
			fmt.Println("tick", number)
			time.Sleep(time.Second)
		}
	case "follow":
		follow(words[1], words[2])
	default:
		select {}
	}
}

type object struct {
	Metadata struct{ ResourceVersion string }
	Data     map[string]string
	Code     int
}

func follow(server, name string) {
	authority, err := os.ReadFile(account + "ca.crt")
	if err != nil {
		panic(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}}
	version := ""
	for {
		version, err = watch(client, server, name, version)
		fmt.Println("ended:", err)
		time.Sleep(100 * time.Millisecond)
	}
}

func watch(client *http.Client, server, name, version string) (string, error) {
	query := url.Values{"watch": {"1"}, "fieldSelector": {"metadata.name=" + name}}
	if version != "" {
		query.Set("resourceVersion", version)
	}
	request, err := http.NewRequest("GET", server+"/api/v1/namespaces/default/configmaps?"+query.Encode(), nil)
	if err != nil {
		return version, err
	}
	token, err := os.ReadFile(account + "token")
	if err != nil {
		return version, err
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	answer, err := client.Do(request)
	if err != nil {
		return version, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(answer.Body, 300))
		return version, fmt.Errorf("%d: %s", answer.StatusCode, said)
	}
	lines := bufio.NewReader(answer.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return version, err
		}
		var event struct {
			Type   string
			Object object
		}
		if err := json.Unmarshal(line, &event); err != nil {
			return version, err
		}
		if event.Type == "ERROR" {
			return "", fmt.Errorf("the watch failed: %d", event.Object.Code)
		}
		version = event.Object.Metadata.ResourceVersion
		fmt.Println("seen", event.Object.Data["number"])
	}
}
