import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import chromiumPackage from '@sparticuz/chromium';
import { type Browser, chromium, type Page } from 'playwright-core';
import { PROJECT_ROOT } from '../../platform/projectRoot.js';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Addresses of the screens without parameters, as web/src/app/screens.tsx lists them. */
export const SCREEN_PATHS: readonly string[] = [
  ...readFileSync(join(PROJECT_ROOT, 'web/src/app/screens.tsx'), 'utf8').matchAll(
    /\b(?:screen\(\s*|path: )'([^':]+)'/g,
  ),
].map((match) => match[1] ?? '');

export interface ViewOptions {
  width?: number;
  height?: number;
  theme?: 'light' | 'dark';
}

/** A tab, and what went wrong in it. */
export interface Tab {
  page: Page;
  /** Errors and warnings of the console, faults of the page, and requests to another host. */
  faults: string[];
  close(): Promise<void>;
}

/** A Chromium of the packages. The tests fail without a build of the dashboard. */
export async function startBrowser(): Promise<Browser> {
  if (!existsSync(join(PROJECT_ROOT, 'dist-web/index.html')))
    throw new Error('the dashboard is not built: run the suite by npm test or npm run test:slow');
  return chromium.launch({
    executablePath: await chromiumPackage.executablePath(),
    args: ['--no-sandbox', '--disable-gpu'],
    headless: true,
  });
}

/** A tab with separate cookies; signed in if a key is given. */
export async function openTab(
  browser: Browser,
  baseUrl: string,
  key?: string,
  { width = 1440, height = 900, theme = 'light' }: ViewOptions = {},
): Promise<Tab> {
  const context = await browser.newContext({
    baseURL: baseUrl,
    viewport: { width, height },
    colorScheme: theme,
  });
  if (key !== undefined) {
    const answer = await context.request.post('/api/v1/session', {
      data: { api_key: key },
      headers: { Origin: baseUrl, 'X-Requested-With': 'dashboard' },
    });
    if (answer.status() !== 204)
      throw new Error(`sign-in answered ${answer.status()}: ${await answer.text()}`);
  }
  const page = await context.newPage();
  const faults: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') faults.push(message.text());
  });
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('request', (request) => {
    if (!request.url().startsWith(baseUrl) && !/^(?:data|blob):/.test(request.url()))
      faults.push(`request to ${request.url()}`);
  });
  return { page, faults, close: () => context.close() };
}

/** Opens an address and waits until the screen has its data. */
export async function visit(page: Page, address: string): Promise<void> {
  await page.goto(address);
  await page.locator('h1').first().waitFor();
  await page.waitForLoadState('networkidle');
}

/** The serious and critical findings of axe on the page, of all rules or of these, as `rule: element`. */
export async function seriousFindings(page: Page, rules?: readonly string[]): Promise<string[]> {
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(AXE);
  const { violations } = await page.evaluate(
    (options) =>
      (
        globalThis as unknown as {
          axe: {
            run(
              options: object,
            ): Promise<{ violations: { impact: string; id: string; nodes: { html: string }[] }[] }>;
          };
        }
      ).axe.run(options),
    { resultTypes: ['violations'], ...(rules && { runOnly: [...rules] }) },
  );
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 160)}`));
}
