import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openTab, SCREEN_PATHS, seriousFindings, startBrowser, visit } from '../support/browser.js';
import { type ClaimedDemo, startClaimedDemo } from '../support/claimedDemo.js';

let demo: ClaimedDemo;
let browser: Browser;

beforeAll(async () => {
  [demo, browser] = await Promise.all([startClaimedDemo(), startBrowser()]);
});

afterAll(async () => {
  await browser.close();
  await demo.close();
});

it('the list of screens is read', () => {
  expect(SCREEN_PATHS).toContain('/');
});

describe.each([
  ['full', () => demo.organization.adminKey],
  ['empty', async () => (await demo.api.addOrganization()).adminKey],
] as const)('in an organization that is %s', (_state, key) => {
  it.each(SCREEN_PATHS)(
    '%s has no fault and no serious finding of axe, in light and dark at three widths',
    async (path) => {
      for (const theme of ['light', 'dark'] as const) {
        const tab = await openTab(browser, demo.api.baseUrl, await key(), { theme });
        for (const width of [1440, 768, 320]) {
          await tab.page.setViewportSize({ width, height: 900 });
          await visit(tab.page, path);
          expect(await seriousFindings(tab.page), `${path} ${theme} ${width}`).toEqual([]);
          const overflow = await tab.page.evaluate<number>(
            'document.documentElement.scrollWidth - document.documentElement.clientWidth',
          );
          expect(overflow, `${path} scrolls sideways at ${width}`).toBe(0);
        }
        expect(tab.faults, `${path} ${theme}`).toEqual([]);
        await tab.close();
      }
    },
  );
});
