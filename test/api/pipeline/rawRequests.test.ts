import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi } from '../../support/api.js';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

/**
 * Longest silence, milliseconds. A second answer would come with the first, since the bytes of both requests are sent
 * together; only a machine that stalls this long would make a closing connection seem open.
 */
const SILENCE_MS = 15_000;

/** Everything that the server answers to these bytes until it closes the connection, or is silent for a while. */
function converse(bytes: string | Buffer): Promise<{ statuses: number[]; text: string; isClosed: boolean }> {
  const { hostname, port } = new URL(api.baseUrl);
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(Number(port), hostname);
    const end = (isClosed: boolean) => {
      socket.destroy();
      const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
      resolve({ statuses, text, isClosed });
    };
    socket.setTimeout(SILENCE_MS, () => end(false));
    socket.on('data', (chunk) => (text += chunk.toString('latin1')));
    socket.on('error', (error: NodeJS.ErrnoException) => (text === '' ? reject(error) : end(true)));
    socket.on('close', () => end(true));
    socket.write(bytes);
  });
}

const message = (...lines: string[]) => lines.join('\r\n');
/** A request of which a proxy that reads the first one otherwise would make a second request of another client. */
const HIDDEN = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n';
const POST = ['POST /api/v1/ingest/events HTTP/1.1', 'Host: localhost', 'Content-Type: application/json'];

/** The problem in an answer, which has to be like every other one: its type, its id, the end of the connection. */
function problemIn(text: string): Record<string, unknown> {
  const [head = '', body = ''] = text.split('\r\n\r\n');
  const headers = new Map(
    head
      .split('\r\n')
      .slice(1)
      .map((line): [string, string] => [
        line.slice(0, line.indexOf(':')).toLowerCase(),
        line.slice(line.indexOf(':') + 2),
      ]),
  );
  const problem = JSON.parse(body) as Record<string, unknown>;
  expect(Object.fromEntries(headers)).toMatchObject({
    'content-type': 'application/problem+json',
    'content-length': String(Buffer.byteLength(body)),
    'x-request-id': problem.request_id,
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    connection: 'close',
  });
  expect(head.split('\r\n')[0]).toMatch(new RegExp(`^HTTP/1\\.1 ${problem.status} [A-Z][A-Za-z ]+$`));
  expect(problem).toMatchObject({
    type: `urn:problem:${problem.code}`,
    instance: `urn:request:${problem.request_id}`,
    message: problem.detail,
  });
  return problem;
}

describe('a request that the HTTP parser refuses is answered by a problem that names it', () => {
  const GET = (path: string, ...headers: string[]) => message(`GET ${path} HTTP/1.1`, ...headers, '', '');
  const long = (length: number) => 'y'.repeat(length);
  it.each<[string, string, number, string, RegExp]>([
    [
      'an address of 9 KB',
      GET(`/x?${long(9_000)}`, 'Host: localhost', 'Connection: close'),
      414,
      'uri_too_long',
      /8192 bytes/,
    ],
    ['an address of 20 KB', GET(`/x?${long(20_000)}`, 'Host: localhost'), 414, 'uri_too_long', /8192 bytes/],
    [
      'an address of 200 KB',
      GET(`/x?${long(200_000)}`, 'Host: localhost'),
      414,
      'uri_too_long',
      /8192 bytes/,
    ],
    [
      'a header of 20 KB',
      GET('/x', 'Host: localhost', `A: ${long(20_000)}`),
      431,
      'request_head_too_large',
      /16384/,
    ],
    [
      'many headers',
      GET('/x', 'Host: localhost', ...Array.from({ length: 2_000 }, (_, at) => `X-${at}: 12345678`)),
      431,
      'request_head_too_large',
      /16384/,
    ],
    [
      'a method that is none',
      message('FETCH /x HTTP/1.1', 'Host: localhost', '', ''),
      400,
      'malformed_request',
      /method/,
    ],
    ['a header that is none', GET('/x', 'Host: localhost', 'a b: c'), 400, 'malformed_request', /header/],
    [
      'two lengths',
      message(...POST, 'Content-Length: 1', 'Content-Length: 2', '', ''),
      400,
      'malformed_request',
      /length/,
    ],
    ['a version', message('GET /x HTTP/3.7', 'Host: localhost', '', ''), 400, 'malformed_request', /version/],
    ['no host', GET('/healthz'), 400, 'malformed_request', /Host/],
    ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400, 'malformed_request', /HTTP/],
    ['a text', 'hello\r\n\r\n', 400, 'malformed_request', /HTTP/],
  ])('%s', async (_name, bytes, status, code, sentence) => {
    const { statuses, text, isClosed } = await converse(bytes);
    expect([statuses, isClosed], text.slice(0, 300)).toEqual([[status], true]);
    const problem = problemIn(text);
    expect(problem).toMatchObject({ status, code });
    expect(problem.detail).toMatch(sentence);
  });

  it('the answer is read whole by a client that continues to send', async () => {
    const { hostname, port } = new URL(api.baseUrl);
    const text = await new Promise<string>((resolve, reject) => {
      let heard = '';
      const socket = connect(Number(port), hostname);
      const more = setInterval(() => socket.writable && socket.write('z'.repeat(65_536)), 1);
      socket.on('data', (chunk) => (heard += chunk.toString('latin1')));
      socket.on('error', reject);
      socket.on('end', () => {
        clearInterval(more);
        socket.destroy();
        resolve(heard);
      });
      socket.write(`GET /x HTTP/1.1\r\nHost: localhost\r\nA: ${long(20_000)}`);
    });
    expect(problemIn(text)).toMatchObject({ status: 431, code: 'request_head_too_large' });
  });

  it('but an unknown expectation is ignored', async () => {
    const { statuses } = await converse(
      message('GET /healthz HTTP/1.1', 'Host: localhost', 'Expect: 200-maybe', 'Connection: close', '', ''),
    );
    expect(statuses).toEqual([200]);
  });
});

describe('a request that two readers could read in two ways', () => {
  it.each([
    [
      'a length and chunks',
      message(...POST, 'Content-Length: 5', 'Transfer-Encoding: chunked', '', '0', '', HIDDEN),
    ],
    [
      'chunks and a length',
      message(...POST, 'Transfer-Encoding: chunked', 'Content-Length: 5', '', '0', '', HIDDEN),
    ],
    ['two lengths', message(...POST, 'Content-Length: 0', 'Content-Length: 38', '', HIDDEN)],
    ['a list of lengths', message(...POST, 'Content-Length: 0, 38', '', HIDDEN)],
    ['a length with a sign', message(...POST, 'Content-Length: +0', '', HIDDEN)],
    ['a length in hexadecimal', message(...POST, 'Content-Length: 0x0', '', HIDDEN)],
    [
      'chunks that are not last',
      message(...POST, 'Transfer-Encoding: chunked, identity', '', '0', '', HIDDEN),
    ],
    [
      'a transfer encoding that nobody knows',
      message(...POST, 'Transfer-Encoding: xchunked', '', '0', '', HIDDEN),
    ],
    [
      'a chunk whose size is no number',
      message(...POST, 'Transfer-Encoding: chunked', '', 'zz', '{}', '0', '', HIDDEN),
    ],
    [
      'a chunk size beyond all numbers',
      message(...POST, 'Transfer-Encoding: chunked', '', 'f'.repeat(40), '{}', '0', '', HIDDEN),
    ],
    [
      'a chunk size ended by LF alone',
      `${message(...POST, 'Transfer-Encoding: chunked', '')}\r\n2\n{}\n0\n\n${HIDDEN}`,
    ],
    ['a space before the colon of a header', message(...POST, 'Content-Length : 0', '', HIDDEN)],
    [
      'a header folded onto a second line',
      message(...POST, 'Transfer-Encoding:', ' chunked', '', '0', '', HIDDEN),
    ],
    ['a NUL in a header', message(...POST, 'X-A: a\0b', 'Content-Length: 0', '', HIDDEN)],
    [
      'a lone CR in a header',
      message(...POST, 'X-A: a\rContent-Length: 38', 'Content-Length: 0', '', HIDDEN),
    ],
    ['a header without a colon', message(...POST, 'Content-Length 0', '', HIDDEN)],
    ['a version that is none', message('GET /healthz HTTP/9.9', 'Host: localhost', '', HIDDEN)],
    ['a method that is none', message('GE T /healthz HTTP/1.1', 'Host: localhost', '', HIDDEN)],
    ['no host', message('GET /healthz HTTP/1.1', '', HIDDEN)],
  ])(
    'is refused once and the connection ends, so that nothing behind it is read: %s',
    async (_name, bytes) => {
      const { statuses, text, isClosed } = await converse(bytes);
      expect(statuses, text).toEqual([400]);
      expect(isClosed, text).toBe(true);
      expect(problemIn(text)).toMatchObject({ status: 400, code: 'malformed_request' });
    },
  );

  it('is answered once where it was answered before its body broke', async () => {
    const chunks = message(...POST, 'Transfer-Encoding: chunked', '', '1', '{}', '0', '', HIDDEN);
    const { statuses, text, isClosed } = await converse(chunks);
    expect(statuses, text).toEqual([401]);
    expect(isClosed).toBe(true);
  });

  it('behind a whole one ends the connection, and nothing behind it is read', async () => {
    const { statuses, isClosed } = await converse(
      `${HIDDEN}${message(...POST, 'Content-Length: x', '', HIDDEN)}`,
    );
    expect([statuses.filter((status) => status === 200).length < 2, isClosed]).toEqual([true, true]);
  });

  it('lines ended by LF alone are one request or a refusal, never two', async () => {
    const { statuses } = await converse(
      message(...POST, 'Content-Length: 0', '', HIDDEN).replaceAll('\r\n', '\n'),
    );
    expect(statuses.filter((status) => status === 200)).toHaveLength(0);
  });

  it('two whole requests on one connection are two answers, in order', async () => {
    const twice = `GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /nowhere HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`;
    expect((await converse(twice)).statuses).toEqual([200, 404]);
  });

  it('CONNECT is not a proxy, and an upgrade is not followed', async () => {
    const tunnel = await converse(message('CONNECT 127.0.0.1:22 HTTP/1.1', 'Host: 127.0.0.1:22', '', ''));
    expect(tunnel.statuses.filter((status) => status < 400)).toEqual([]);
    expect(tunnel.isClosed).toBe(true);
    const upgrade = [
      'GET /healthz HTTP/1.1',
      'Host: localhost',
      // The end of the connection shows that no bytes come after the answer.
      'Connection: close, Upgrade, HTTP2-Settings',
      'Upgrade: h2c',
    ];
    expect(
      (await converse(message(...upgrade, 'HTTP2-Settings: AAMAAABkAAQAAP__', '', ''))).statuses,
    ).toEqual([200]);
  });

  it('an address of another host is only an address of ours', async () => {
    const absolute = message(
      'GET http://other.example/healthz HTTP/1.1',
      'Host: localhost',
      'Connection: close',
      '',
      '',
    );
    const { statuses } = await converse(absolute);
    expect([statuses.length, Number(statuses[0]) < 500]).toEqual([1, true]);
  });
});

describe('a path in another spelling', () => {
  it('leads nowhere in upper case, so that what counts by path sees every one that leads somewhere', async () => {
    const paths = ['/API/V1/KEYS', '/api/v1/Keys', '/V1/traces', '/OPENAPI.JSON', '/Docs', '/METRICS'];
    for (const path of [...paths, '/api/v1/%6beys', '//api/v1/keys', '/api/v1/keys%2f', '/api/v1/keys;a']) {
      const { status } = await fetch(api.baseUrl + path, {
        headers: { authorization: `Bearer ${api.adminKey}` },
      });
      expect(status, path).toBe(404);
    }
  });
});

describe('a path that climbs', () => {
  const climbs = [
    '..',
    '.',
    '%2e%2e',
    '%2E%2E',
    '..%2f',
    '%2e%2e%2f',
    '..%5c',
    '..\\',
    '%252e%252e%252f',
    '..;',
    '%00',
    '%c0%ae%c0%ae',
    '%uff0e%uff0e',
  ];

  it('finds nothing beside the files of the documents: 404, whatever it climbs by', async () => {
    const asked: string[] = [];
    for (const climb of climbs) {
      for (const below of ['docs', 'api/v1/events', ''])
        for (const target of ['package.json', 'etc/passwd', 'swagger-ui.js', '.env'])
          asked.push(`/${below}/${`${climb}/`.repeat(3)}${target}`.replace('//', '/'));
      asked.push(
        `/docs/swagger-ui.css${climb}`,
        `/docs/swagger-ui-bundle.js/${climb}/package.json`,
        `/docs${climb}`,
      );
    }
    for (const path of asked) {
      // Written by hand: a client would tidy the path up before it sends it.
      const { statuses, text } = await converse(
        message(`GET ${path} HTTP/1.1`, 'Host: localhost', 'Connection: close', '', ''),
      );
      expect([path, ...statuses]).toEqual([path, 404]);
      expect(text, path).toMatch(/"code":"route_not_found"/);
      expect(text, path).not.toMatch(/"dependencies"|root:/);
    }
  });

  it('serves of the viewer’s folder only the files that the page needs', async () => {
    for (const name of [
      'package.json',
      'index.html',
      'swagger-ui.js',
      'swagger-ui-bundle.js.map',
      'oauth2-redirect.html',
      '',
    ]) {
      const { statuses } = await converse(
        message(`GET /docs/${name} HTTP/1.1`, 'Host: localhost', 'Connection: close', '', ''),
      );
      expect(statuses, name).toEqual([name === '' ? 200 : 404]);
    }
  });
});
