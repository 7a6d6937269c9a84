import type { LookupAddress } from 'node:dns';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { SafeFetch, type SafeFetchOptions } from '../../../adapters/outbound/safeFetch.js';
import { DomainError } from '../../../domain/errors.js';
import { selfSignedCertificate } from '../../support/certificate.js';

const PUBLIC: LookupAddress = { address: '93.184.215.14', family: 4 };
const INSIDE: LookupAddress = { address: '127.0.0.1', family: 4 };

const opened: { server: Server; sockets: Set<Socket> }[] = [];

afterEach(async () => {
  for (const { server, sockets } of opened.splice(0)) {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
});

function listen(server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
  });
  opened.push({ server, sockets });
  return new Promise((resolve) =>
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)),
  );
}

/** A receiver on this machine under a public name, which the operator has allowed at its port. */
async function receiver(answer: RequestListener, options: SafeFetchOptions = {}) {
  const port = await listen(createServer(answer));
  return at(port, options);
}

/** A receiver that does not speak HTTP. */
async function rawReceiver(answer: (socket: Socket) => void, options: SafeFetchOptions = {}) {
  return at(await listen(createTcpServer(answer)), options);
}

function at(port: number, options: SafeFetchOptions) {
  const allowedHosts = new Set([`hooks.example:${port}`]);
  const fetcher = new SafeFetch({ allowedHosts, resolve: async () => [INSIDE], ...options });
  return { fetcher, port, url: `http://hooks.example:${port}/hook?a=1` };
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text;
}

describe('a request to an address of a user', () => {
  it('carries the caller’s data and nothing of ours: no cookie, no key, no request for compression', async () => {
    const seen: unknown[] = [];
    const { fetcher, url, port } = await receiver(async (request, response) => {
      seen.push([request.method, request.url, request.headers, await textOf(request)]);
      response.writeHead(201, { 'x-seen': 'yes' }).end('thanks');
    });
    const answer = await fetcher.send({
      method: 'POST',
      url,
      headers: { 'Content-Type': 'application/json' },
      body: '{"ü":1}',
    });
    expect([answer.status, answer.headers['x-seen'], answer.body.toString(), answer.isCut]).toEqual([
      201,
      'yes',
      'thanks',
      false,
    ]);
    const headers = {
      host: `hooks.example:${port}`,
      'user-agent': 'Trueup/1',
      'accept-encoding': 'identity',
      connection: 'close',
      'content-type': 'application/json',
      'content-length': '8',
    };
    expect(seen).toEqual([['POST', '/hook?a=1', headers, '{"ü":1}']]);
  });

  it('does not follow a redirect: neither inside nor anywhere', async () => {
    const visited: string[] = [];
    const inside = await listen(createServer((request) => visited.push(String(request.url))));
    for (const status of [301, 302, 303, 307, 308]) {
      const { fetcher, url } = await receiver((_request, response) => {
        response.writeHead(status, { location: `http://127.0.0.1:${inside}/admin` }).end();
      });
      expect((await fetcher.send({ method: 'POST', url, body: 'x' })).status).toBe(status);
    }
    expect(visited).toEqual([]);
  });

  it('uses no proxy of the environment', async () => {
    const visited: string[] = [];
    const proxy = `http://127.0.0.1:${await listen(createServer((request) => visited.push(String(request.url))))}`;
    const names = ['HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'NODE_USE_ENV_PROXY'];
    const before = names.map((name) => process.env[name]);
    for (const name of names) process.env[name] = name === 'NODE_USE_ENV_PROXY' ? '1' : proxy;
    try {
      const { fetcher, url } = await receiver((_request, response) => response.end('direct'));
      expect((await fetcher.send({ method: 'GET', url })).body.toString()).toBe('direct');
    } finally {
      for (const [index, name] of names.entries()) {
        const value = before[index];
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
    }
    expect(visited).toEqual([]);
  });

  it('sets no header about its framing or target, and none with a line break', async () => {
    const fetcher = new SafeFetch();
    for (const headers of [
      { Host: 'other.example' },
      { 'Content-Length': '5' },
      { 'transfer-encoding': 'chunked' },
      { Connection: 'keep-alive' },
      { 'Accept-Encoding': 'gzip' },
      { 'X-A': 'a\r\nX-B: b' },
      { 'X-A\r\n': 'a' },
    ])
      await expect(
        fetcher.send({
          method: 'GET',
          url: 'https://hooks.example/',
          headers: headers as Record<string, string>,
        }),
      ).rejects.toThrow(TypeError);
  });
});

describe('a name', () => {
  it('that leads inside is refused when it is entered and when it is connected to', async () => {
    for (const inside of [
      [INSIDE],
      [{ address: '10.1.2.3', family: 4 }],
      [{ address: '169.254.169.254', family: 4 }],
      [{ address: '::1', family: 6 }],
      [{ address: '::ffff:127.0.0.1', family: 6 }],
      [{ address: 'fd00::1', family: 6 }],
      [PUBLIC, INSIDE],
      [INSIDE, PUBLIC],
    ]) {
      const fetcher = new SafeFetch({ resolve: async () => inside });
      await expect(fetcher.assertPublicAddress('https://hooks.example/', 'url')).rejects.toThrow(DomainError);
      await expect(fetcher.send({ method: 'GET', url: 'https://hooks.example/' })).rejects.toMatchObject({
        fault: 'refused',
      });
    }
  });

  it('that led outside when it was entered and leads inside afterwards is refused when it is connected to', async () => {
    const visited: string[] = [];
    const port = await listen(createServer((request) => visited.push(String(request.url))));
    const answers = [[PUBLIC], [INSIDE]];
    const fetcher = new SafeFetch({ resolve: async () => answers.shift() ?? [INSIDE] });
    expect(await fetcher.assertPublicAddress('http://rebinding.example/', 'url')).toBe(
      'http://rebinding.example/',
    );
    await expect(fetcher.send({ method: 'GET', url: 'http://rebinding.example/' })).rejects.toMatchObject({
      fault: 'refused',
      message: expect.not.stringContaining('127.0.0.1'),
    });
    await expect(fetcher.send({ method: 'GET', url: `http://127.0.0.1:${port}/` })).rejects.toMatchObject({
      fault: 'refused',
    });
    expect(visited).toEqual([]);
  });

  it('is asked for once in a request: what was judged is what is connected to', async () => {
    let asked = 0;
    const resolve = async () => {
      asked += 1;
      return asked === 1 ? [INSIDE] : [{ address: '127.0.0.9', family: 4 }];
    };
    const { fetcher, url } = await receiver(
      (request, response) => response.end(request.socket.localAddress),
      { resolve },
    );
    expect((await fetcher.send({ method: 'GET', url })).body.toString()).toBe('127.0.0.1');
    expect(asked).toBe(1);
  });

  it('that cannot be resolved is reported as such', async () => {
    for (const resolve of [async () => [], async () => Promise.reject(new Error('ENOTFOUND'))]) {
      const fetcher = new SafeFetch({ resolve });
      const url = 'https://hooks.exmaple/';
      await expect(fetcher.assertPublicAddress(url, 'url')).rejects.toThrow(/^url: .*cannot be resolved/);
      await expect(fetcher.send({ method: 'GET', url })).rejects.toMatchObject({ fault: 'unreachable' });
    }
  });

  it('is looked up by the system’s resolver by default: this machine’s own name is refused', async () => {
    const fetcher = new SafeFetch({ allowedHosts: new Set() });
    await expect(fetcher.assertPublicAddress('http://localhost/', 'url')).rejects.toThrow(/^url: /);
    const allowing = new SafeFetch({ allowedHosts: new Set(['localhost']) });
    expect(await allowing.assertPublicAddress('http://localhost/', 'url')).toBe('http://localhost/');
  });
});

describe('an address that is entered', () => {
  it('is refused with its field, and with a sentence that names the remedy', async () => {
    const fetcher = new SafeFetch({ resolve: async () => [INSIDE] });
    for (const text of [
      'http://127.0.0.1/',
      'https://hooks.example/',
      'ftp://a.example',
      'https://u:p@a.example',
      'nothing',
    ]) {
      const refusal = await fetcher
        .assertPublicAddress(text, 'endpoint.url')
        .catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(DomainError);
      expect(refusal).toMatchObject({
        code: 'invalid_body',
        issues: [{ in: 'body', field: 'endpoint.url' }],
      });
      expect((refusal as Error).message).toMatch(/^endpoint\.url: must /);
    }
  });

  it('of the own network, or at another port, is refused with what the operator can do about it', async () => {
    const fetcher = new SafeFetch({ resolve: async () => [INSIDE] });
    const refusalOf = (text: string) =>
      fetcher.assertPublicAddress(text, 'url').catch((error) => error.message);
    for (const text of ['http://10.0.0.5/', 'https://hooks.example/', 'https://a.example:8443/'])
      expect(await refusalOf(text)).toMatch(
        /; the operator can allow a host and port .*OUTBOUND_ALLOWED_HOSTS/,
      );
    expect(await refusalOf('ftp://a.example')).not.toContain('OUTBOUND_ALLOWED_HOSTS');
  });

  it('is stored as the URL standard writes it', async () => {
    const fetcher = new SafeFetch({ resolve: async () => [PUBLIC] });
    expect(await fetcher.assertPublicAddress(' HTTPS://Hooks.Example:443/a/../b#c', 'url')).toBe(
      'https://hooks.example/b',
    );
  });
});

describe('an answer', () => {
  const MEBIBYTE = 1_048_576;

  it('is read up to 64 KB, and its connection is closed where there is more', async () => {
    let isClosed = false;
    const { fetcher, url } = await receiver((_request, response) => {
      response.on('close', () => {
        isClosed = true;
      });
      const more = () => {
        while (!response.destroyed && response.write(Buffer.alloc(16_384, 'x')));
      };
      response.on('drain', more);
      more();
    });
    const answer = await fetcher.send({ method: 'GET', url });
    expect([answer.body.length, answer.isCut]).toEqual([65_536, true]);
    await expect.poll(() => isClosed).toBe(true);
    const whole = await receiver((_request, response) => response.end(Buffer.alloc(65_536, 'x')));
    const exact = await whole.fetcher.send({ method: 'GET', url: whole.url });
    expect([exact.body.length, exact.isCut]).toEqual([65_536, false]);
  });

  it('is never inflated: a bomb stays as small as it came', async () => {
    const bomb = gzipSync(Buffer.alloc(32 * MEBIBYTE));
    expect(bomb.length).toBeLessThan(65_536);
    const { fetcher, url } = await receiver((_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb);
    });
    const answer = await fetcher.send({ method: 'GET', url });
    expect(answer.body.equals(bomb)).toBe(true);
  });

  it('of endless headers, of no HTTP, of an unrequested upgrade, or of nothing is broken', async () => {
    const cases: [string, (socket: Socket) => void][] = [
      ['headers', (socket) => socket.write(`HTTP/1.1 200 OK\r\nX-A: ${'a'.repeat(40_000)}\r\n\r\n`)],
      ['no HTTP', (socket) => socket.write('220 smtp.example ESMTP\r\n')],
      [
        'two framings',
        (socket) =>
          socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'),
      ],
      [
        'an upgrade',
        (socket) => socket.write('HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'),
      ],
    ];
    for (const [name, answer] of cases) {
      const { fetcher, url } = await rawReceiver((socket) => socket.once('data', () => answer(socket)));
      await expect(fetcher.send({ method: 'GET', url }), name).rejects.toMatchObject({
        fault: 'broken_answer',
      });
    }
  });

  it('that breaks off, or a connection that is refused, is unreachable', async () => {
    const cut = await rawReceiver((socket) =>
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf');
        setImmediate(() => socket.resetAndDestroy());
      }),
    );
    await expect(cut.fetcher.send({ method: 'GET', url: cut.url })).rejects.toMatchObject({
      fault: 'unreachable',
    });
    const port = await listen(createServer());
    const gone = at(port, {});
    for (const { server } of opened.splice(0)) await new Promise((resolve) => server.close(resolve));
    await expect(gone.fetcher.send({ method: 'GET', url: gone.url })).rejects.toMatchObject({
      fault: 'unreachable',
      message: expect.not.stringContaining('127.0.0.1'),
    });
  });

  it('by TLS is taken with a certificate for the name from an authority that is believed, and from no other', async () => {
    const { cert, key } = selfSignedCertificate('hooks.example');
    const port = await listen(createTlsServer({ cert, key }, (_request, response) => response.end('sealed')));
    const allowedHosts = new Set([`hooks.example:${port}`, `other.example:${port}`]);
    const options = { allowedHosts, resolve: async () => [INSIDE] };
    const url = `https://hooks.example:${port}/`;
    const believed = await new SafeFetch({ ...options, ca: cert }).send({ method: 'GET', url });
    expect(believed.body.toString()).toBe('sealed');
    const stranger = new SafeFetch(options).send({ method: 'GET', url });
    await expect(stranger).rejects.toMatchObject({ fault: 'unreachable' });
    const elsewhere = new SafeFetch({ ...options, ca: cert });
    await expect(
      elsewhere.send({ method: 'GET', url: `https://other.example:${port}/` }),
    ).rejects.toMatchObject({ fault: 'unreachable', message: expect.stringContaining('CERT_ALTNAME') });
  });

  it('with broken TLS is unreachable', async () => {
    const { fetcher, url } = await rawReceiver((socket) =>
      socket.once('data', () => socket.end('HTTP/1.1 400 Bad\r\n\r\n')),
    );
    await expect(fetcher.send({ method: 'GET', url: url.replace('http:', 'https:') })).rejects.toMatchObject({
      fault: 'unreachable',
    });
  });

  it('that does not come in time ends at the timeout: no name, no TLS, no headers, a body drop by drop', async () => {
    const soon = { connectMs: 100, totalMs: 200 };
    const nameless = new SafeFetch({ ...soon, resolve: () => new Promise(() => undefined) });
    await expect(nameless.send({ method: 'GET', url: 'https://hooks.example/' })).rejects.toMatchObject({
      fault: 'timed_out',
    });
    await expect(nameless.assertPublicAddress('https://hooks.example/', 'url')).rejects.toThrow(
      /cannot be resolved/,
    );
    const silent = await rawReceiver(() => undefined, soon);
    for (const url of [silent.url, silent.url.replace('http:', 'https:')])
      await expect(silent.fetcher.send({ method: 'GET', url }), url).rejects.toMatchObject({
        fault: 'timed_out',
      });
    const slow = await receiver((_request, response) => {
      response.writeHead(200);
      const timer = setInterval(() => response.write('x'), 20);
      response.on('close', () => clearInterval(timer));
    }, soon);
    await expect(slow.fetcher.send({ method: 'GET', url: slow.url })).rejects.toMatchObject({
      fault: 'timed_out',
    });
  });

  it('without a waiting caller is cancelled', async () => {
    const { fetcher, url } = await rawReceiver(() => undefined);
    const abort = new AbortController();
    const sent = fetcher.send({ method: 'GET', url, signal: abort.signal });
    abort.abort();
    await expect(sent).rejects.toMatchObject({ fault: 'cancelled' });
  });
});
