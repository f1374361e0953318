"""EKF3 wind states: pure logic on decoded MAVLink messages and dataflash records."""
