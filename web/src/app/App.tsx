import { notifyManager, QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { Component, type ReactNode, Suspense } from 'react';
import { Route, Switch, useLocation } from 'wouter';
import { isProblem } from '../api/client';
import { ButtonLink } from '../parts/forms/Button';
import { Page } from '../parts/Page';
import { Empty, ErrorState, Loading } from '../parts/States';
import { Toasts } from '../parts/Toasts';
import { Frame } from './Frame';
import { RunWatch } from './runs';
import { SCREENS, type Screen } from './screens';
import { SessionGate, useMay } from './session';

const RETRIES_MAX = 2;

// A button that was pressed shows before the next press that its request is under way; a timer may come too late.
notifyManager.setScheduler(queueMicrotask);

/** An answer of the API with a status below 500 is final; a failed connection is tried again. */
const client = new QueryClient({
  defaultOptions: {
    // The service may run on this machine: a browser without a network still reaches it.
    mutations: { networkMode: 'always' },
    queries: {
      networkMode: 'always',
      staleTime: 5_000,
      retry: (failures, error) => failures < RETRIES_MAX && !(isProblem(error) && error.status < 500),
    },
  },
});

export function App() {
  return (
    <QueryClientProvider client={client}>
      <Toasts>
        <Fault>
          <SessionGate>
            <RunWatch>
              <Frame>
                <ScreenFault>
                  <Suspense fallback={<Loading />}>
                    <Switch>
                      {SCREENS.map((screen) => (
                        <Route key={screen.path} path={screen.path}>
                          <Allowed screen={screen} />
                        </Route>
                      ))}
                      <Route>
                        <Page title="Not found">
                          <Empty title="There is no screen at this address">
                            <ButtonLink href="/">Go to the overview</ButtonLink>
                          </Empty>
                        </Page>
                      </Route>
                    </Switch>
                  </Suspense>
                </ScreenFault>
              </Frame>
            </RunWatch>
          </SessionGate>
        </Fault>
      </Toasts>
    </QueryClientProvider>
  );
}

function Allowed({ screen: { name, scope, component: Shown } }: { screen: Screen }) {
  const may = useMay();
  if (scope === undefined || may({ scope })) return <Shown />;
  return (
    <Page title={name ?? 'Not for this role'}>
      <Empty title="Your role does not see this screen">
        <p>
          It needs a key with the scope <code>{scope}</code>. An administrator can make one.
        </p>
      </Empty>
    </Page>
  );
}

function ScreenFault({ children }: { children: ReactNode }) {
  const [path] = useLocation();
  return <Fault path={path}>{children}</Fault>;
}

/** Catches a fault of one screen, so that the navigation keeps working; another path shows another screen. */
class Fault extends Component<{ path?: string; children: ReactNode }, { error: unknown }> {
  override state: { error: unknown } = { error: undefined };

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override componentDidUpdate({ path }: { path?: string }) {
    if (path !== this.props.path && this.state.error !== undefined) this.setState({ error: undefined });
  }

  override render() {
    if (this.state.error === undefined) return this.props.children;
    // Code that failed to load fails again until the page loads anew.
    return <ErrorState error={this.state.error} retry={() => window.location.reload()} />;
  }
}
