import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import type Router from '@koa/router';
import { DomainError } from '../domain/errors.js';
import { PROJECT_ROOT } from '../platform/projectRoot.js';

/** The packages for applications, of this very version: `npm start` builds them from sdk/. */

const FOLDER = path.join(PROJECT_ROOT, 'dist-sdk');
/** Names that the build writes; nothing else is read from the disk. */
const PACKAGE_NAME = /^[\w.-]+\.(tgz|whl)$/;

interface SdkPackage {
  file: string;
  sha256: string;
  content: Buffer;
}

/** Undefined: the packages are not built yet. */
let packages: Promise<SdkPackage[]> | undefined;

async function readPackages(): Promise<SdkPackage[]> {
  const names = await readdir(FOLDER).catch(() => []);
  return Promise.all(
    names
      .filter((name) => PACKAGE_NAME.test(name))
      .sort()
      .map(async (file) => {
        const content = await readFile(path.join(FOLDER, file));
        return { file, content, sha256: createHash('sha256').update(content).digest('hex') };
      }),
  );
}

async function servedPackages(): Promise<SdkPackage[]> {
  packages ??= readPackages();
  const found = await packages;
  if (found.length === 0) packages = undefined;
  return found;
}

/** Lists the packages with their sha256 at `/sdk/`, and serves each one below it. Both are public. */
export function sdkRoutes(router: Router, baseUrl: () => string): void {
  router.get('/sdk', async (ctx) => {
    ctx.state.operation = 'listSdkPackages';
    const listed = (await servedPackages()).map(({ file, sha256, content }) => {
      const url = `${baseUrl()}/sdk/${file}`;
      const install = `${file.endsWith('.whl') ? 'pip' : 'npm'} install ${url}`;
      return { file, url, size_bytes: content.length, sha256, install };
    });
    ctx.set('Cache-Control', 'no-cache');
    ctx.body = { packages: listed };
  });
  router.get('/sdk/:name', async (ctx) => {
    ctx.state.operation = 'sdkPackage';
    const found = (await servedPackages()).find(({ file }) => file === ctx.params.name);
    if (!found) throw new DomainError('route_not_found', 'there is no such package: see /sdk/');
    ctx.set('Content-Type', 'application/octet-stream');
    ctx.set('Cache-Control', 'no-cache');
    ctx.set('ETag', `"${found.sha256}"`);
    ctx.status = 200;
    if (ctx.headers['if-none-match'] === `"${found.sha256}"`) ctx.status = 304;
    else ctx.body = found.content;
  });
}
