/** Forms of settings' values, and their parsers. */

const HOST_AND_PORT = /^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(\d{1,5})$/;

const PEOPLE_ROLES = ['admin', 'member', 'auditor'] as const;

/** The role of each group; undefined: the text is no list of group=role. */
export function readRoleMap(
  value: string,
): (readonly [group: string, role: (typeof PEOPLE_ROLES)[number]])[] | undefined {
  const pairs = listOf(value).map((pair) => {
    const at = pair.lastIndexOf('=');
    const role = PEOPLE_ROLES.find((one) => one === pair.slice(at + 1).trim());
    return at > 0 && role ? ([pair.slice(0, at).trim(), role] as const) : undefined;
  });
  return pairs.length > 0 && pairs.every((pair) => pair !== undefined) ? pairs : undefined;
}

/** A Postgres address that names a database. */
export function isPostgresUrl(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol, pathname } = new URL(value);
  return /^postgres(?:ql)?:$/.test(protocol) && pathname.length > 1;
}

/** A mail server's address. */
export function isSmtpUrl(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol, hostname, pathname, search, hash } = new URL(value);
  return /^smtps?:$/.test(protocol) && hostname !== '' && /^\/?$/.test(pathname) && `${search}${hash}` === '';
}

/** The name and address of a sender; undefined: the text is none. */
export function readSender(value: string): { name: string; address: string } | undefined {
  const [, name = '', bracketed, bare] =
    /^(?:([^<>"\p{Cc}]{0,100})<([^<>\s]+)>|([^<>\s]+))$/u.exec(value.trim()) ?? [];
  const address = bracketed ?? bare ?? '';
  return /^[^\s@,;<>()"\p{Cc}]{1,64}@[A-Za-z0-9.-]{1,189}$/u.test(address)
    ? { name: name.trim(), address }
    : undefined;
}

/** http(s) without parts that a log must not show or that a path cannot follow. */
export function isWebAddress(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol, username, password, search, hash } = new URL(value);
  return /^https?:$/.test(protocol) && `${username}${password}${search}${hash}` === '';
}

/** https only, because documents and sign-ins must leave this machine encrypted. */
export function isEncryptedAddress(value: string): boolean {
  if (!isWebAddress(value)) return false;
  const { protocol, hostname } = new URL(value);
  return protocol === 'https:' || /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(hostname);
}

/** Without trailing slashes, so that a path can be appended. */
export function withoutSlash(address: string): string {
  return address.replace(/\/+$/, '');
}

/** An origin as browsers write it: scheme, host and a port that is not the scheme's default. */
export function isWebOrigin(value: string): boolean {
  return isWebAddress(value) && new URL(value).origin === value;
}

/** A host as a URL writes it, optionally with a port, so that one address cannot have two entries. */
export function isHostOfUrl(value: string): boolean {
  const [, host = '', port] = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(\d{1,5}))?$/.exec(value) ?? [];
  if (!URL.canParse(`http://${host}/`)) return false;
  return new URL(`http://${host}/`).hostname === host && (port === undefined || isHostAndPort(value));
}

/** The items between commas. */
export function listOf(value: string): string[] {
  return value.split(',').map((item) => item.trim());
}

/** `host:port` or `[address]:port` with a port that can be connected to. */
export function isHostAndPort(value: string): boolean {
  const port = Number(HOST_AND_PORT.exec(value)?.[1] ?? 0);
  return port >= 1 && port <= 65_535;
}
