/**
 * Preloaded before a client program: the providers' host names lead to this machine, where the fakes listen.
 * So a client is configured with the host that it would really use, and its telemetry names that host.
 */
const dns = require('node:dns');

const NAMES = new Set(['api.openai.com', 'api.anthropic.com', 'llm-gateway.example']);
const realLookup = dns.lookup;

dns.lookup = function lookup(name, ...rest) {
  return realLookup.call(dns, NAMES.has(name) ? '127.0.0.1' : name, ...rest);
};
