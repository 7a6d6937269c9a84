import { get } from 'node:http';

const NEWLINE = 0x0a;

/** Reads an export to its end and counts its lines; throws if the transfer lacks its last chunk. */
export function readExport(
  port: number,
  path: string,
  key: string,
): Promise<{ rows: number; bytes: number; seconds: number }> {
  const started = performance.now();
  return new Promise((resolve, reject) => {
    const request = get(
      { host: '127.0.0.1', port, path, headers: { authorization: `Bearer ${key}` } },
      (response) => {
        if (response.statusCode !== 200)
          return reject(new Error(`the export answered ${response.statusCode}`));
        let rows = 0;
        let bytes = 0;
        response.on('data', (chunk: Buffer) => {
          bytes += chunk.length;
          for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, at + 1)) rows += 1;
        });
        response.on('error', reject);
        response.on('end', () => {
          if (response.complete) resolve({ rows, bytes, seconds: (performance.now() - started) / 1000 });
          else reject(new Error('the export broke off'));
        });
      },
    );
    request.on('error', reject);
  });
}
