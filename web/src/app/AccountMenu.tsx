import { Button, Menu, MenuItem, MenuTrigger, Popover } from 'react-aria-components';
import { useLocation } from 'wouter';
import menu from '../parts/forms/MenuButton.module.css';
import css from './Frame.module.css';
import { useSignOut } from './useSignOut';

/** Actions that a person seldom takes. Its code is large, so that it loads after the screen. */
export default function AccountMenu({
  isOpenAtFirst,
  onHelp,
}: {
  /** The button was pressed before this code was there. */
  isOpenAtFirst: boolean;
  onHelp: () => void;
}) {
  const [, go] = useLocation();
  const signOut = useSignOut();
  return (
    <MenuTrigger defaultOpen={isOpenAtFirst}>
      <Button className={css.barButton} aria-label="Account">
        ⋯
      </Button>
      <Popover className={menu.popover}>
        <Menu
          className={menu.menu}
          onAction={(key) => {
            if (key === 'out') void signOut();
            else if (key === 'help') onHelp();
            else if (key === 'docs') window.open('/docs', '_blank', 'noopener');
            else go(String(key));
          }}
        >
          <MenuItem id="help" className={menu.item}>
            Keyboard shortcuts
          </MenuItem>
          <MenuItem id="docs" className={menu.item}>
            API documentation
          </MenuItem>
          <MenuItem id="out" className={menu.item}>
            Sign out
          </MenuItem>
        </Menu>
      </Popover>
    </MenuTrigger>
  );
}
