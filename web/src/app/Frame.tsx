import { type ReactNode, Suspense, useState } from 'react';
import { Button as AriaButton } from 'react-aria-components';
import { Link, useLocation } from 'wouter';
import { Modal } from '../parts/forms/Modal';
import { Loading } from '../parts/States';
import { DemoBar } from './demo';
import css from './Frame.module.css';
import { lazyPart } from './lazyPart';
import { useBusyScreens } from './runs';
import { ServiceState } from './ServiceState';
import { GROUPS, SCREENS } from './screens';
import { useMay, useSession } from './session';
import { ShortcutHelp, useShortcuts } from './shortcuts';
import { nextTheme, useTheme } from './theme';

const AccountMenu = lazyPart(() => import('./AccountMenu'), { canWait: true });
const Finder = lazyPart(() => import('./Finder'));

/** Navigation at the left, a bar on top, the screen between. On narrow screens the navigation opens from the bar. */
export function Frame({ children }: { children: ReactNode }) {
  const session = useSession();
  const [isNavOpen, setIsNavOpen] = useState(false);
  const [isSearchOpen, setIsSearchOpen] = useState(false);
  const [isAccountAsked, setIsAccountAsked] = useState(false);
  const [isHelpOpen, setIsHelpOpen] = useState(false);
  const [theme, setTheme] = useTheme();
  const isBusy = useBusyScreens().size > 0;
  useShortcuts({ search: () => setIsSearchOpen(true), help: () => setIsHelpOpen(true) });
  return (
    <div className={css.frame}>
      <a href="#content" className={css.skip}>
        Skip to the content
      </a>
      <header className={css.bar}>
        <AriaButton
          className={`${css.barButton} ${css.navButton}`}
          aria-label={isBusy ? 'Open the navigation: a run is under way' : 'Open the navigation'}
          onPress={() => setIsNavOpen(true)}
        >
          ☰{isBusy && <span className={css.busy} />}
        </AriaButton>
        <Link href="/" className={css.brand}>
          <img src="/icon.svg" alt="" width={24} height={24} /> Trueup
        </Link>
        <span className={css.organization}>{session.organization.name}</span>
        <span className={css.space} />
        <AriaButton className={css.search} onPress={() => setIsSearchOpen(true)}>
          Search <kbd>⌘K</kbd>
        </AriaButton>
        <AriaButton
          className={css.barButton}
          aria-label={`Theme: ${theme}. Change it`}
          onPress={() => setTheme(nextTheme(theme))}
        >
          {theme === 'dark' ? '☾' : theme === 'light' ? '☀' : '◐'}
        </AriaButton>
        <Suspense
          fallback={
            <AriaButton
              className={css.barButton}
              aria-label="Account"
              onPress={() => setIsAccountAsked(true)}
            >
              ⋯
            </AriaButton>
          }
        >
          <AccountMenu isOpenAtFirst={isAccountAsked} onHelp={() => setIsHelpOpen(true)} />
        </Suspense>
      </header>
      <nav className={css.nav} aria-label="Screens">
        <Navigation />
      </nav>
      <main id="content" tabIndex={-1} className={css.content}>
        <ServiceState />
        <DemoBar />
        {children}
      </main>
      <Modal title="Screens" isOpen={isNavOpen} onClose={() => setIsNavOpen(false)}>
        <nav aria-label="All screens">
          <Navigation onGo={() => setIsNavOpen(false)} />
        </nav>
      </Modal>
      <Modal title="Find" isOpen={isSearchOpen} onClose={() => setIsSearchOpen(false)}>
        <Suspense fallback={<Loading label="Find" />}>
          <Finder onClose={() => setIsSearchOpen(false)} />
        </Suspense>
      </Modal>
      <ShortcutHelp isOpen={isHelpOpen} onClose={() => setIsHelpOpen(false)} />
    </div>
  );
}

function Navigation({ onGo }: { onGo?: () => void }) {
  const [location] = useLocation();
  const may = useMay();
  const busy = useBusyScreens();
  const current = location.split('/')[1] ?? '';
  return GROUPS.map((group) => {
    const screens = SCREENS.filter(
      (screen) => screen.group === group && screen.name && (!screen.scope || may({ scope: screen.scope })),
    );
    if (screens.length === 0) return null;
    return (
      <div key={group} className={css.group}>
        {group && <p className={css.groupName}>{group}</p>}
        <ul>
          {screens.map((screen) => (
            <li key={screen.path}>
              <Link
                href={screen.path}
                onClick={onGo}
                aria-current={screen.path.split('/')[1] === current ? 'page' : undefined}
                className={css.link}
              >
                {screen.name}
                {busy.has(screen.path.split('/')[1] ?? '') && (
                  <span className={css.busy} title="A run is under way">
                    <span className="visually-hidden">(a run is under way)</span>
                  </span>
                )}
              </Link>
            </li>
          ))}
        </ul>
      </div>
    );
  });
}
