import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import type { Context } from 'koa';
import { DomainError } from '../../domain/errors.js';

/** Not checked: orchestrators request it under any name or address, and it reveals nothing. */
const OPEN_PATH = '/healthz';

/** The host names that the service answers, in lower case. */
export function hostNamesOf(baseUrl: string, allowedHosts: readonly string[]): ReadonlySet<string> {
  return new Set(['localhost', normalized(new URL(baseUrl).hostname), ...allowedHosts.map(normalized)]);
}

/**
 * Refuses a request whose Host header names another host: a foreign site can point its name at this machine (DNS
 * rebinding), and its page could then read answers as same-origin. IP literals pass, since no name can be pointed at
 * them. HTTP/1.0 without a Host header passes, since no browser sends it. Error: host_not_allowed.
 */
export function checkHost(ctx: Context, names: ReadonlySet<string>): void {
  if (ctx.path === OPEN_PATH) return;
  const hosts = hostsOf(ctx.req);
  if (hosts.length === 0) return;
  const [host = '', ...more] = hosts;
  if (more.length > 0)
    throw refused(
      'the request has several Host headers; send one. ALLOWED_HOSTS lists the names that are answered',
    );
  const name = nameOf(host);
  if (isKnown(name, names)) return;
  throw refused(
    `the Host header names ${host.slice(0, 100)}, which is not an address of this installation; set BASE_URL to it, or add it to ALLOWED_HOSTS`,
  );
}

/** Whether a request has one Host header, which names this service. */
export function isHostKnown(req: IncomingMessage, names: ReadonlySet<string>): boolean {
  const [host = '', ...more] = hostsOf(req);
  return more.length === 0 && isKnown(nameOf(host), names);
}

function hostsOf({ rawHeaders }: IncomingMessage): string[] {
  return rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === 'host');
}

function isKnown(name: string | undefined, names: ReadonlySet<string>): boolean {
  return name !== undefined && (names.has(name) || isIP(name) !== 0);
}

/** The name in `name`, `name:port`, `[address]` or `[address]:port`; undefined for any other form. */
function nameOf(host: string): string | undefined {
  const [, bracketed, plain] = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]/@\s]+))(?::\d{1,5})?$/.exec(host) ?? [];
  if (bracketed !== undefined) return bracketed;
  return plain === undefined ? undefined : normalized(plain);
}

function normalized(name: string): string {
  return name
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '');
}

function refused(sentence: string): DomainError {
  return new DomainError('host_not_allowed', sentence);
}
