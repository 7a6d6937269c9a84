import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Provider from 'oidc-provider';

/** A person at the provider, by the name with which they sign in. */
export type People = Readonly<Record<string, { email?: string; name?: string; groups?: readonly string[] }>>;

export interface OpenIdProvider {
  issuer: string;
  /** Signs a person in as a browser would; returns the address to which the provider sends the browser back. */
  signIn(address: string, login: string): Promise<string>;
  close(): Promise<void>;
}

/** A certified OpenID provider on loopback, with its own pages for signing in. */
export async function startOpenIdProvider(
  people: People,
  client: { id: string; secret: string; redirectUri: string },
): Promise<OpenIdProvider> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: client.id,
        client_secret: client.secret,
        redirect_uris: [client.redirectUri],
        token_endpoint_auth_method: 'client_secret_post',
      },
    ],
    pkce: { required: () => true },
    scopes: ['openid', 'profile', 'email', 'groups'],
    claims: { openid: ['sub'], profile: ['name'], email: ['email'], groups: ['groups'] },
    cookies: { keys: ['a key of the test'] },
    findAccount: (_ctx: unknown, sub: string) => ({
      accountId: sub,
      claims: () => ({ sub, ...people[sub] }),
    }),
  });
  server.on('request', provider.callback());
  return {
    issuer,
    signIn: (address, login) => new Browser(issuer).signIn(address, login),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** A browser as far as the provider's pages need one: cookies, redirects, forms. */
class Browser {
  readonly #origin: string;
  readonly #cookies = new Map<string, string>();

  constructor(origin: string) {
    this.#origin = origin;
  }

  async signIn(address: string, login: string): Promise<string> {
    let next = await this.#follow(address);
    for (const form of [{ prompt: 'login', login, password: 'any' }, { prompt: 'consent' }]) {
      if (!next.startsWith(`${this.#origin}/interaction/`)) return next;
      const answer = await this.#send(next, new URLSearchParams(form));
      next = await this.#follow(answer ?? next);
    }
    return next;
  }

  /** Follows redirects of the provider; the address of the page where they end, or of another site. */
  async #follow(address: string): Promise<string> {
    let next = address;
    for (let step = 0; step < 10; step += 1) {
      if (!next.startsWith(this.#origin)) return next;
      const location = await this.#send(next);
      if (location === undefined) return next;
      next = location;
    }
    throw new Error(`the provider redirects in a circle: ${next}`);
  }

  async #send(address: string, form?: URLSearchParams): Promise<string | undefined> {
    const answer = await fetch(address, {
      method: form ? 'POST' : 'GET',
      redirect: 'manual',
      headers: { cookie: [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(form ? { body: form } : {}),
    });
    await answer.arrayBuffer();
    for (const cookie of answer.headers.getSetCookie()) {
      const [name = '', value = ''] = (cookie.split(';')[0] ?? '').split(/=(.*)/s);
      this.#cookies.set(name, value);
    }
    const location = answer.headers.get('location');
    return location === null ? undefined : new URL(location, address).href;
  }
}
